// The forms of most commands about a hub: a list, one record, and a change. The tables say only what differs.

import type { Option } from 'commander'
import type { Static, TSchema } from 'typebox'
import { line, type Paint, type Shown } from '../../../text/printable.ts'
import { printMessage } from '../../../text/terminal.ts'
import type { Call } from '../../../wire/call.ts'
import type { HubClient } from '../../link/hub-client.ts'
import type { Entry } from '../kit/command-table.ts'
import type { Row, Where } from '../kit/names.ts'
import { doing, page, type Words, yes } from './entry.ts'
import { confirmed, done, type Facts, list, type PageOptions, pageOf, record, type Section } from './output.ts'

/** The options of commands that have one of these forms. */
interface Given extends PageOptions {
  org?: string
  realm?: string
  scope?: string
  name?: string
  role?: string
  search?: string
  yes?: boolean
}

/** `wanted` is the first argument; most commands have no other. */
type Find<Found> = (hub: HubClient, wanted: string, options: Given, ...more: string[]) => Promise<Found>

/** A command that prints a page of a list: a row for each of the `rows` of the reply. */
export function listing<Body extends TSchema, Data extends TSchema, K extends keyof Static<Data>>(
  ...[usage, does, example, { call, where, rows, row, below, options = [] }]: Words<{
    options?: readonly Option[]
    call: Call<Body, Data>
    where?(hub: HubClient, options: Given, wanted: string): Promise<Where<Body>>
    rows: K
    row(item: Row<Data, K>, paint: Paint): Shown[]
    /** What is said below the rows. */
    below?(items: readonly Row<Data, K>[], hub: HubClient): Promise<readonly string[]>
  }>
): Entry {
  return doing(usage, does, example, {
    options: [...options, ...page],
    run: async (hub, given, wanted: string) => {
      const filter = await where?.(hub, given, wanted)
      const found = await hub.call(call, { ...filter, ...pageOf(given) } as Static<Body>)
      const items = found[rows] as Row<Data, K>[]
      list(given, found as { total: number }, items, row)
      if (below && !given.json) for (const text of await below(items, hub)) printMessage(line`${text}`)
    },
  })
}

/** A command that prints one record. */
export function showing<Found>(
  ...[usage, does, example, { find, title, facts, sections }]: Words<{
    find: Find<Found>
    title(found: Found): string
    facts(found: Found): Facts
    sections(found: Found, paint: Paint): Section[]
  }>
): Entry {
  return doing(usage, does, example, {
    run: async (hub, given, wanted: string) => {
      const found = await find(hub, wanted, given)
      record(given, found, title(found), facts(found), paint => sections(found, paint))
    },
  })
}

/** A command that changes something: it asks before something is lost, and says what it did. */
export function changing<Found, Reply>(
  ...[usage, does, example, { options = [], find, question, call, confirmation }]: Words<{
    options?: readonly Option[]
    find: Find<Found>
    question?(found: Found): string
    call(hub: HubClient, found: Found): Promise<Reply>
    confirmation(found: Found, reply: Reply): string | readonly string[]
  }>
): Entry {
  return doing(usage, does, example, {
    options: question ? [...options, yes] : options,
    run: async (hub, given, wanted: string, ...more) => {
      const found = await find(hub, wanted, given, ...more)
      if (question) await confirmed(question(found), given)
      const reply = await call(hub, found)
      done(given, reply, ...[confirmation(found, reply)].flat())
    },
  })
}
