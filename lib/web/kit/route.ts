// The address of the page: `#/runs/<id>/logs?phase=build#L120-L140`. Every page, tab, filter and line of a log has one.

import { computed, signal } from '@preact/signals'
import { keepToken } from './api.ts'

const hash = signal('')

/** Consecutive lines of the log of a run, by their numbers. */
export interface LineRange {
  from: number
  to: number
}

/** The parts of the path, decoded, the query, and the numbers of lines. */
export const route = computed(() => {
  const [address = '', first, last = first] = hash.value.replace(/^#\/?/, '').split(/#L(\d{1,10})(?:-L(\d{1,10}))?$/)
  const [path = '', query = ''] = address.split(/\?(.*)/s)
  const parts = path.split('/').filter(Boolean).map(decoded)
  return {
    parts: parts.length > 0 ? parts : ['runs'],
    query: new URLSearchParams(query),
    lines: first ? rangeOf(Number(first), Number(last)) : null,
  }
})

const rangeOf = (one: number, other: number): LineRange => ({ from: Math.min(one, other), to: Math.max(one, other) })

/** The address of lines of a run. `query` are the filters of its log. */
export function toLines(runId: string, one: number, other = one, query: Record<string, string> = {}): string {
  const { from, to: last } = rangeOf(one, other)
  return `${withQuery(to('runs', runId, 'logs'), query)}#L${from}${last > from ? `-L${last}` : ''}`
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** What the page shows besides its name, such as a run with its state. It is the title of the tab, so that tabs differ. */
export const subject = signal('')

export const to = (...parts: string[]): string => `#/${parts.map(encodeURIComponent).join('/')}`

/** An address with a query. Empty values are left out. */
export function withQuery(address: string, values: Record<string, string>): string {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ''))
  return query.size > 0 ? `${address}?${query}` : address
}

/** A number of this entry of the history, the same whenever somebody comes back to it. */
export function entry(): number {
  const { number } = (history.state ?? {}) as { number?: number }
  if (number !== undefined) return number
  const made = Math.random()
  history.replaceState({ number: made }, '')
  return made
}

export function go(address: string): void {
  location.hash = address
}

/** Changes the query of this address without a new entry in the history. */
export function setQuery(values: Record<string, string>): void {
  history.replaceState(null, '', withQuery(to(...route.value.parts), values))
  hash.value = location.hash
}

/** Removes a token from the address, so that the browser neither shows it nor keeps it in the history. */
function read(): void {
  const found = /^#token=([\w-]+)(?:&(.*))?$/.exec(location.hash)
  if (found) {
    keepToken(found[1]!)
    history.replaceState(null, '', `#/${(found[2] ?? '').replace(/^\//, '')}`)
  }
  hash.value = location.hash
}

/** `chosen`: the values of filters in the address, '' for none. `filter(name)`: the properties of the field for one. */
export function filters<Name extends string>(...names: Name[]) {
  const { query } = route.value
  const chosen = Object.fromEntries(names.map(name => [name, query.get(name) ?? ''])) as Record<Name, string>
  const filter = (name: Name) => ({
    value: chosen[name],
    set: (value: string) => setQuery({ ...chosen, [name]: value }),
  })
  return { chosen, filter }
}

export function follow(): void {
  addEventListener('hashchange', read)
  read()
}
