// The frame of each page: the bar with links to all pages, and the table of pages from which it is made.

import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { focusMain, Undo } from '../kit/actions.tsx'
import { lost } from '../kit/connection.ts'
import { PALETTE_KEY, palette, showHelp } from '../kit/keys.tsx'
import { later } from '../kit/later.tsx'
import { Empty } from '../kit/parts.tsx'
import { route, subject, to } from '../kit/route.ts'
import { When } from '../kit/time.tsx'
import { mayNotify, useWaiting } from './reviews.tsx'
import { knownTeams } from './runs.tsx'

/** One entry of the table of pages. Its name is the first part of its address. */
export interface Page {
  title: string
  /** The key that opens it after `g`. A page without one has no link in the bar. */
  key?: string
  /** `id` is the second part of the address. */
  show(id: string | undefined, query: URLSearchParams): ComponentChildren
}

export type Pages = Readonly<Record<string, Page>>

/** The names of the pages by their keys. */
export const keysOf = (pages: Pages): Record<string, string> =>
  Object.fromEntries(Object.entries(pages).flatMap(([name, { key }]) => (key ? [[key, name]] : [])))

const Palette = later('palette', async () => (await import('../kit/palette.tsx')).Palette, 'div')

export function PageBar({ pages, children }: { pages: Pages; children?: ComponentChildren }) {
  const [here = ''] = route.value.parts
  const found = useWaiting()
  const waiting = found ?? 0
  useIcon(waiting)
  useNotifications(found)
  useEffect(() => {
    const count = waiting > 0 ? `(${waiting})` : ''
    const words = subject.value === '' ? [count, pages[here]?.title ?? 'cadre'] : [subject.value, count]
    document.title = `${words.filter(Boolean).join(' ')} · cadre`
    // A narrow screen has no room for all links, so they scroll.
    document.querySelector('.frame [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [here, waiting, subject.value])
  return (
    <>
      <header class="frame">
        <a class="brand" href={to('runs')}>
          cadre
        </a>
        <nav aria-label="Pages">
          {Object.values(keysOf(pages)).map(name => (
            <a key={name} href={to(name)} aria-current={name === here ? 'page' : undefined}>
              {pages[name]!.title}
              {name === 'reviews' && waiting > 0 && <span class="count">{waiting}</span>}
            </a>
          ))}
        </nav>
        <button
          type="button"
          class="plain small"
          aria-keyshortcuts="Control+K Meta+K"
          onClick={() => {
            palette.value = true
          }}
        >
          Find <kbd>{PALETTE_KEY}</kbd>
        </button>
        <button type="button" class="plain small" onClick={showHelp}>
          Keys
        </button>
        {children}
      </header>
      {palette.value && (
        <Palette
          pages={pages}
          teamsOf={knownTeams}
          close={() => {
            palette.value = false
          }}
        />
      )}
      <Lost />
      <Undo />
    </>
  )
}

/** A server that does not answer, and how old what is shown is. */
function Lost() {
  if (lost.value === null) return null
  return (
    <div class="notice awaiting_input lost" role="status">
      The connection is lost. What is shown is from <When at={lost.value} />. Nothing can be changed until it is back;
      the page tries again by itself.
    </div>
  )
}

/** The number of reviews that wait, in the icon of the tab. */
function useIcon(waiting: number): void {
  useEffect(() => {
    if (waiting === 0) return
    const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')!
    const before = icon.getAttribute('href')!
    const count = waiting > 9 ? '9+' : waiting
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#b45309"/><text x="8" y="12" font-size="11" font-family="sans-serif" font-weight="bold" text-anchor="middle" fill="#fff">${count}</text></svg>`
    icon.href = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }))
    return () => {
      URL.revokeObjectURL(icon.href)
      icon.href = before
    }
  }, [waiting])
}

/** Tells a person who has asked for it that more waits, while they look at something else. */
function useNotifications(waiting: number | undefined): void {
  const before = useRef(waiting)
  useEffect(() => {
    const more = (waiting ?? 0) - (before.current ?? waiting ?? 0)
    before.current = waiting ?? before.current
    if (more <= 0 || !mayNotify() || document.hasFocus()) return
    new Notification('cadre', { body: waiting === 1 ? 'A review waits' : `${waiting} reviews wait`, tag: 'reviews' })
  }, [waiting])
}

/** The page of this address. */
export function CurrentPage({ pages }: { pages: Pages }) {
  const { parts, query } = route.value
  const [name = '', id] = parts
  const here = useRef(`${name}/${id}`)
  useEffect(() => {
    if (here.current !== `${name}/${id}`) focusMain()
    here.current = `${name}/${id}`
  }, [name, id])
  return <>{Object.hasOwn(pages, name) ? pages[name]!.show(id, query) : <NoPage name={name} />}</>
}

function NoPage({ name }: { name: string }) {
  return (
    <main>
      <Empty>
        <p>There is no page {name}.</p>
        <p>
          Go to the <a href={to('runs')}>runs</a>.
        </p>
      </Empty>
    </main>
  )
}
