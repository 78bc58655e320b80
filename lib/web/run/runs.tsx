// The list of all top runs, newest first, and its filters. The list reads the pages that the user scrolls to.

import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ListRunTeams } from '../../wire/calls/runs.ts'
import { STARTERS } from '../../wire/records/words.ts'
import { call } from '../kit/api.ts'
import { Field, nameChoices, Select } from '../kit/fields.tsx'
import { useKeys } from '../kit/keys.tsx'
import { later } from '../kit/later.tsx'
import { Empty, Failure, useLoaded } from '../kit/parts.tsx'
import { go, to } from '../kit/route.ts'
import { State, Tolerated, wordOf } from '../kit/state.tsx'
import { TimeOfDay, Took, When } from '../kit/time.tsx'
import { Virtual } from '../kit/virtual.tsx'
import { type HeldRuns, heldRuns, type Run } from './held-runs.ts'

const HEIGHT = 56
const REFRESH_MS = 2_000

const Views = later('views', async () => (await import('../kit/views.tsx')).Views, 'div')

/** The filters of both servers. `children` come before them. */
export function RunFilters({
  states,
  chosen,
  filter,
  searched,
  children,
}: {
  states: readonly string[]
  chosen: Readonly<Record<string, string>>
  filter(name: 'state' | 'team' | 'started_by' | 'search'): { value: string; set(value: string): void }
  /** In what the server searches. */
  searched: string
  children?: ComponentChildren
}) {
  const teams = useLoaded('teams', knownTeams)
  const team = filter('team')
  const starter = filter('started_by')
  return (
    <search class="row filters">
      {children}
      <Select
        label="State"
        {...filter('state')}
        of={[['', 'all'], ...states.map(each => [each, wordOf(each)] as const)]}
      />
      <Select label="Team" {...team} of={nameChoices('all', teams.data ?? [], team.value)} />
      <Select
        label="Started by"
        {...starter}
        of={nameChoices('all', Object.keys(STARTERS), starter.value).map(([value, title]) => [
          value,
          Object.hasOwn(STARTERS, value) ? STARTERS[value as keyof typeof STARTERS] : title,
        ])}
      />
      <Field label="Search" type="search" maxLength={200} placeholder={searched} {...filter('search')} />
      <Views page="runs" chosen={chosen} />
    </search>
  )
}

/** Nobody finds a team among more of them. The field for a text finds each. */
const MOST_TEAMS = 1_000

/** The names of teams that ran here, for fields that ask for one. */
export async function knownTeams(): Promise<string[]> {
  const all: string[] = []
  for (let more = true; more; ) {
    const { teams, total } = await call(ListRunTeams, { limit: 100, offset: all.length })
    all.push(...teams)
    more = teams.length > 0 && all.length < Math.min(total, MOST_TEAMS)
  }
  return all
}

interface Listed {
  filter: { state: string; team: string; started_by: string; search: string; realm_id?: string }
  /** The text where no run is. */
  children: ComponentChildren
}

/** The runs that fit the filters. */
export const RunList = (listed: Listed) => <List key={JSON.stringify(listed.filter)} {...listed} />

function List({ filter: given, children }: Listed) {
  const [held] = useState(() => heldRuns(given))
  const { total, isMore, error, chosen, waiting, indexedUntil } = held
  useEffect(() => {
    // Without this pause, each typed letter would be a request.
    const first = setTimeout(() => held.look(), given.search ? 150 : 0)
    const timer = setInterval(() => !document.hidden && void held.look(), REFRESH_MS)
    return () => {
      clearTimeout(first)
      clearInterval(timer)
    }
  }, [])

  const count = total.value ?? 0
  const move = (by: number) => {
    chosen.value = Math.max(0, Math.min(count - 1, chosen.value + by))
  }
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    Enter: () => {
      const run = held.at(chosen.value)
      if (run) go(to('runs', run.run_id))
    },
  })
  /** The row that is opened is the chosen one when its reader comes back. */
  const choose = ({ target }: MouseEvent) => {
    const row = (target as Element).closest('[aria-posinset]')
    if (row) chosen.value = Number(row.getAttribute('aria-posinset')) - 1
  }
  const showNew = async () => {
    const box = document.querySelector<HTMLElement>('.virtual.list')!
    box.scrollTop = 0
    // The button goes away.
    box.focus()
    await held.showNew()
  }

  if (error.value !== null && total.value === null) return <Failure of={error.value} />
  if (total.value === null) return <div class="virtual list" aria-busy="true" />
  const lag = indexedUntil.value !== null && (
    <span>
      indexed to <TimeOfDay at={indexedUntil.value} />
    </span>
  )
  if (count === 0) {
    return <Empty>{Object.values(given).some(Boolean) ? <p>No run fits these filters. {lag}</p> : children}</Empty>
  }
  return (
    <>
      <Failure of={error.value} />
      <p class="quiet small counted">
        {count === 1 ? '1 run' : `${isMore.value ? 'the newest ' : ''}${count.toLocaleString('en')} runs`}
        {waiting.value > 0 && (
          <button type="button" class="plain" onClick={showNew}>
            {waiting.value.toLocaleString('en')} new
          </button>
        )}
        {lag}
      </p>
      <Virtual
        count={count}
        height={HEIGHT}
        show={chosen.value}
        from={held.top}
        onScroll={top => {
          held.top = top
        }}
        onRange={(first, last) => void held.see(first, last)}
        box={{
          class: 'list',
          tabIndex: 0,
          role: 'list',
          'aria-label': 'Runs',
          onClick: choose,
          ...touches(held),
        }}
        row={index => (
          <Row key={index} run={held.at(index)} index={index} count={count} chosen={index === chosen.value} />
        )}
      />
    </>
  )
}

/** Rows stay where they are under the pointer and the focus. The list itself has the focus when it is scrolled with keys. */
const touches = (held: HeldRuns) => ({
  onPointerEnter: () => {
    held.isPointed = true
  },
  onPointerLeave: () => {
    held.isPointed = false
  },
  onFocusIn: ({ target, currentTarget }: FocusEvent) => {
    held.isFocused = target !== currentTarget
  },
  onFocusOut: () => {
    held.isFocused = false
  },
})

function Row({ run, index, count, chosen }: { run: Run | undefined; index: number; count: number; chosen: boolean }) {
  const position = { 'aria-posinset': index + 1, 'aria-setsize': count }
  if (!run) return <div class="item" role="listitem" {...position} />
  return (
    <div class={`item ${chosen ? 'chosen' : ''}`} role="listitem" {...position}>
      <State of={run.state} bare />
      <a class="name" href={to('runs', run.run_id)}>
        {run.run_name ?? run.team}
      </a>
      <span class="quiet small about">
        <Tolerated count={run.tolerated} />
        {run.run_name === null ? wordOf(run.state) : `${run.team} · ${wordOf(run.state)}`}
        {run.environment && ` · in ${run.environment}`}
        {run.state === 'queued' && run.reason !== null && ` · ${run.reason}`}
        {run.error && ` · ${run.error.message}`}
      </span>
      <span class="small times">
        <When at={run.started_at} />
        <Took of={run} />
      </span>
    </div>
  )
}
