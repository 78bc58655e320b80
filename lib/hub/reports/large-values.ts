// Large values of runs, phases and reviews. They are in a table of their own, and the row says how many bytes each has, so
// that a list reads small rows whatever daemons report. A call for one run, phase or review reads the whole of it.

import { and, eq, inArray, or, type SQL } from 'drizzle-orm'
import { batchWriter } from '../../../db/hub/batch-writer.ts'
import type { Beside } from '../../../db/hub/run-tables.ts'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { briefError, cut, ERROR_BYTES, VALUE_BYTES } from '../../wire/budget.ts'

export type LargeValue = Tables['largeValues']['$inferSelect']

/** How many bytes of a column its row may have, and what the row has instead of a larger value. */
export type Limits = Readonly<Record<string, readonly [most: number, instead: (value: unknown) => unknown]>>

const nothing = () => null
const noText = () => ''
const noList = () => []
const textOfAtMost = (most: number) => (text: unknown) => cut(String(text), most)

/** The form of a gate and its question are read in lists. Few are larger than this. */
const REVIEW_BYTES = 8 * 1024

export const RUN_LIMITS = {
  inputs: [VALUE_BYTES, () => ({})],
  outputs: [VALUE_BYTES, nothing],
  deliveries: [VALUE_BYTES, nothing],
  error: [ERROR_BYTES, briefError],
  reason: [ERROR_BYTES, textOfAtMost(ERROR_BYTES)],
} satisfies Limits

export const PHASE_LIMITS = {
  text: [VALUE_BYTES, noText],
  data: [VALUE_BYTES, nothing],
  error: [ERROR_BYTES, briefError],
  reason: [ERROR_BYTES, textOfAtMost(ERROR_BYTES)],
  depends_on: [ERROR_BYTES, noList],
} satisfies Limits

export const REVIEW_LIMITS = {
  entries: [REVIEW_BYTES, noList],
  prompt: [REVIEW_BYTES, nothing],
  inputs: [REVIEW_BYTES, noList],
  reviewers: [REVIEW_BYTES, noList],
  comment: [REVIEW_BYTES, nothing],
  next: [REVIEW_BYTES, nothing],
  shown: [REVIEW_BYTES, nothing],
  reason: [ERROR_BYTES, textOfAtMost(ERROR_BYTES)],
} satisfies Limits

/** Who has a value: a run, or something of it. */
export const ownerOf = {
  run: '',
  phase: (index: number) => `phase ${index}`,
  review: (id: string) => `review ${id}`,
}

/** `row` as its table has it, and its large values, which are written separately. */
export function splitLargeValues<Row extends { run_id: string }>(
  row: Row,
  owner: string,
  limits: Limits,
): { row: Row & { beside: Beside | null }; large: LargeValue[] } {
  const kept: Record<string, unknown> = { ...row }
  const beside: Record<string, number> = {}
  const large: LargeValue[] = []
  for (const [name, [most, instead]] of Object.entries(limits)) {
    const given = kept[name]
    if (given === null || given === undefined) continue
    const value = JSON.stringify(given)
    if (value.length <= most / 3) continue
    const bytes = Buffer.byteLength(typeof given === 'string' ? given : value)
    if (bytes <= most) continue
    kept[name] = instead(given)
    beside[name] = bytes
    large.push({ run_id: row.run_id, owner, name, value })
  }
  return { row: { ...(kept as Row), beside: large.length === 0 ? null : beside }, large }
}

export const writeLargeValues = batchWriter(({ largeValues }) => largeValues, { key: ['run_id', 'owner', 'name'] })

/** Deletes a large value that a row has no more. */
export async function deleteLargeValue(store: Store, tx: Db, gone: Omit<LargeValue, 'value'>): Promise<void> {
  const { largeValues: large } = store
  const one = and(eq(large.run_id, gone.run_id), eq(large.owner, gone.owner), eq(large.name, gone.name))
  await tx.delete(large).where(one)
}

interface RowWithSizes {
  run_id: string
  beside: Beside | null
}

/** A row with all of its large values. */
export async function withLargeValues<Row extends RowWithSizes>(
  store: Store,
  db: Db,
  owner: string,
  row: Row,
): Promise<Row> {
  const names = Object.keys(row.beside ?? {})
  if (names.length === 0) return row
  const [values] = await largeValuesOf(store, db, row.run_id, [{ owner, names }])
  return { ...row, ...values }
}

/** A run with all that was reported of it. */
export const runWithLargeValues = <Row extends RowWithSizes>(store: Store, db: Db, row: Row): Promise<Row> =>
  withLargeValues(store, db, ownerOf.run, row)

/** The values of these columns of a run, by owner, in the order of `wanted`. */
export async function largeValuesOf(
  { largeValues: large }: Store,
  db: Db,
  runId: string,
  wanted: readonly { owner: string; names: readonly string[] }[],
): Promise<Record<string, unknown>[]> {
  const conditions = wanted.flatMap(({ owner, names }): SQL[] =>
    names.length === 0 ? [] : [and(eq(large.owner, owner), inArray(large.name, [...names]))!],
  )
  const found = new Map(wanted.map(({ owner }) => [owner, {} as Record<string, unknown>]))
  // A statement has a limited number of conditions.
  for (let at = 0; at < conditions.length; at += 100) {
    const where = and(eq(large.run_id, runId), or(...conditions.slice(at, at + 100)))
    for (const { owner, name, value } of await db.select().from(large).where(where)) {
      found.get(owner)![name] = JSON.parse(value)
    }
  }
  return wanted.map(({ owner }) => found.get(owner)!)
}
