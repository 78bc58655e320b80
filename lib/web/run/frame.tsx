// The frame of each page: the bar with links to all pages, and the table of pages from which it is made.

import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { Empty } from '../kit/parts.tsx'
import { route, to } from '../kit/route.ts'
import { usePendingReviews } from './reviews.tsx'

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

export function PageBar({ pages, children }: { pages: Pages; children?: ComponentChildren }) {
  const [here = ''] = route.value.parts
  const waiting = usePendingReviews().data?.total ?? 0
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${pages[here]?.title ?? 'cadre'} · cadre`
    // A narrow screen has no room for all links, so they scroll.
    document.querySelector('.frame [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [here, waiting])
  return (
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
      {children}
    </header>
  )
}

/** The page of this address. */
export function CurrentPage({ pages }: { pages: Pages }) {
  const { parts, query } = route.value
  const [name = '', id] = parts
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
