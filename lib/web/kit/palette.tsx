// What Ctrl+K opens: one field that finds runs, teams, reviews and pages, and the actions of the page that is shown. The
// field keeps the focus, and the arrow keys move through what was found (the combobox of the WAI-ARIA practices).

import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { ListReviews } from '../../wire/calls/reviews.ts'
import { ListRuns } from '../../wire/calls/runs.ts'
import { shownActions } from './actions.tsx'
import { call } from './api.ts'
import { showHelp } from './keys.tsx'
import { Failure, useLoaded } from './parts.tsx'
import { go, to, withQuery } from './route.ts'
import { State, wordOf } from './state.tsx'

interface Found {
  group: 'Actions of this page' | 'Pages' | 'Reviews that wait' | 'Teams' | 'Runs'
  name: string
  about?: string | undefined
  /** The keys that do the same. */
  keys?: string | undefined
  state?: string
  /** Why the reader may not. */
  forbidden?: string | null
  open(): void
}

/** So many of a group are shown. */
const MOST = 8
/** Without this pause, each typed letter would be a request. */
const PAUSE_MS = 120
/** A part of an id, which sub-runs have, too. */
const PART_OF_ID = /^[0-9a-f]{6}[0-9a-f-]*$/i

export function Palette({
  pages,
  teamsOf,
  close,
}: {
  pages: Record<string, { title: string; key?: string }>
  teamsOf(): Promise<string[]>
  close(): void
}) {
  const text = useSignal('')
  const chosen = useSignal<Found | null>(null)
  const dialog = useRef<HTMLDialogElement>(null)
  const options = useRef<HTMLDivElement>(null)
  const own = useRef<readonly Found[]>([])
  useLayoutEffect(() => {
    own.current = [...actionsHere(), ...pagesOf(pages)]
    dialog.current?.showModal()
  }, [])
  const others = useLoaded('palette', () => teamsAndReviews(teamsOf))
  const search = text.value.trim()
  const runs = useRuns(search)
  const words = text.value.toLowerCase().split(/\s+/).filter(Boolean)
  const fits = ({ name, about = '' }: Found) => words.every(word => `${name} ${about}`.toLowerCase().includes(word))
  const known = [...own.current, ...(others.data ?? [])].filter(fits)
  // The runs of before stay until those of this search are there, as far as they fit.
  const groups = Map.groupBy([...known, ...runs.of.filter(run => runs.for === search || fits(run))], groupOf)
  const found = [...groups.values()].flatMap(some => some.slice(0, MOST))
  const before = chosen.value === null ? -1 : found.indexOf(chosen.value)
  const at = before < 0 ? Math.min(0, found.length - 1) : before
  useLayoutEffect(() => {
    options.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [at, found.length])

  const choose = (item: Found | undefined) => {
    if (!item || item.forbidden) return
    // This gives the focus back to where it was, from where the item may move it.
    dialog.current?.close()
    item.open()
  }
  const move = (by: number) => {
    chosen.value = found[(at + by + found.length) % Math.max(1, found.length)] ?? null
  }
  const keys: Record<string, () => void> = {
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: () => choose(found[at]),
  }
  return (
    <dialog class="palette" ref={dialog} aria-label="Go to, or do" onClose={close}>
      <input
        role="combobox"
        aria-label="Go to, or do"
        aria-expanded="true"
        aria-controls="palette"
        aria-autocomplete="list"
        aria-activedescendant={at < 0 ? undefined : `palette-${at}`}
        placeholder="A run, team, review, page or action"
        autocomplete="off"
        spellcheck={false}
        maxLength={200}
        value={text.value}
        onInput={event => {
          text.value = event.currentTarget.value
          chosen.value = null
        }}
        onKeyDown={event => {
          const work = event.isComposing ? undefined : keys[event.key]
          if (!work) return
          event.preventDefault()
          work()
        }}
      />
      <Failure of={runs.error ?? others.error} />
      <div id="palette" role="listbox" aria-label="Found" ref={options}>
        {found.map((item, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the focus, and takes the keys
          <div
            key={index}
            id={`palette-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            aria-disabled={item.forbidden ? true : undefined}
            onMouseDown={event => event.preventDefault()}
            onClick={() => choose(item)}
          >
            {item.group !== found[index - 1]?.group && <span class="quiet small group">{item.group}</span>}
            {item.state !== undefined && <State of={item.state} bare />}
            <span class="name">{item.name}</span>
            <span class="quiet small about">{item.forbidden ?? item.about}</span>
            {item.keys !== undefined && <kbd>{item.keys}</kbd>}
          </div>
        ))}
      </div>
      <p class="quiet small" role="status">
        {found.length === 0 ? 'Nothing was found.' : `${found.length} found`}
      </p>
    </dialog>
  )
}

/** The buttons of actions that can be seen, in their order. */
function actionsHere(): Found[] {
  const seen = [...shownActions].filter(({ element }) => element.offsetParent !== null)
  seen.sort((a, b) => (a.element.compareDocumentPosition(b.element) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1))
  return seen.map(({ element, name, about, forbidden, start }) => ({
    group: 'Actions of this page',
    name: name ?? element.textContent.trim(),
    about,
    forbidden: forbidden ?? null,
    open() {
      element.scrollIntoView({ block: 'nearest' })
      element.focus()
      start()
    },
  }))
}

function pagesOf(pages: Record<string, { title: string; key?: string }>): Found[] {
  const named = Object.entries(pages).filter(([name, { key }]) => key !== undefined || name === 'account')
  return [
    ...named.map(([name, { title, key }]): Found => {
      return { group: 'Pages', name: title, keys: key && `g ${key}`, open: () => go(to(name)) }
    }),
    { group: 'Pages', name: 'Keys, and how times are shown', keys: '?', open: showHelp },
  ]
}

async function teamsAndReviews(teamsOf: () => Promise<string[]>): Promise<Found[]> {
  const [teams, { reviews }] = await Promise.all([teamsOf(), call(ListReviews, { state: 'pending', limit: 100 })])
  return [
    ...reviews.map(({ run_id, run_name, phase, team, prompt }): Found => {
      const name = [team, run_name, phase ?? 'start'].filter(Boolean).join(' › ')
      const open = () => go(withQuery(to('runs', run_id), { phase: phase ?? '' }))
      return { group: 'Reviews that wait', name, about: prompt ?? undefined, open }
    }),
    ...teams.map((team): Found => {
      return { group: 'Teams', name: team, about: 'its runs', open: () => go(withQuery(to('runs'), { team })) }
    }),
  ]
}

async function runsWith(search: string): Promise<Found[]> {
  const filter = search === '' ? {} : { search }
  const { runs } = await call(ListRuns, { ...filter, limit: MOST, root_only: !PART_OF_ID.test(search) })
  return runs.map(({ run_id, run_name, team, state }) => ({
    group: 'Runs',
    name: run_name ?? team,
    about: [run_name === null ? '' : team, wordOf(state), run_id].filter(Boolean).join(' · '),
    state,
    open: () => go(to('runs', run_id)),
  }))
}

/** The runs of the last search that was answered. A letter is searched once nothing more was typed for a moment. */
function useRuns(search: string) {
  const found = useSignal<{ for: string; of: readonly Found[]; error: unknown }>({ for: '', of: [], error: null })
  useEffect(() => {
    let live = true
    const timer = setTimeout(async () => {
      const answer = await runsWith(search).then(
        of => ({ of, error: null }),
        error => ({ of: [], error }),
      )
      if (live) found.value = { for: search, ...answer }
    }, PAUSE_MS)
    return () => {
      live = false
      clearTimeout(timer)
    }
  }, [search])
  return found.value
}

const groupOf = ({ group }: Found): string => group
