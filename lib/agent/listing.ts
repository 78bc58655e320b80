// Searches and listings: reads page after page, writes every item to a file, and returns `data` of limited size.

import type { TProperties } from 'typebox'
import type { Json } from '../json.ts'
import { Type } from '../schema/type.ts'
import { streamOf } from '../stream.ts'
import type { AgentContext } from './agent-context.ts'
import { AgentError } from './core/agent-error.ts'
import { ADDRESS } from './json-api.ts'

/**
 * The field `limit` of every search and listing.
 * @example entry: entryOf({ ref: Type.String(), limit: Limit })
 */
export const Limit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 10_000, description: 'How many items to fetch at most; 100 if it is left out.' }),
)
/** The limit for an entry that gives none. */
export const LIMIT = 100

/** Maximum number of bytes of a listing's items in `data`. The file contains all of them. */
export const DATA_BYTES = 384 * 1024
/** Number of characters of a file that are written together. */
const CHUNK = 64 * 1024
/** Number of characters that a page should have at most: several copies of it are in memory for a moment. */
const PAGE_CHARS = 4 * 1024 * 1024
/** Number of items in a first page that may be large: nobody knows yet how large the items are. */
const FIRST_ITEMS = 250
/** After this many consecutive pages without an item, a listing counts as endless. */
const EMPTY_PAGES = 20
/** Maximum number of pages, however many items they contain. */
const PAGES_MOST = 10_000

export interface Page<T, C> {
  items: readonly T[]
  /** The cursor of the next page; null or undefined on the last page. */
  next?: C | null | undefined
  /** The number of all items, if the vendor reports it. */
  total?: number | undefined
}

/**
 * Reads page after page until the last one. Throws an AgentError `endless` when the pages do not end.
 * @example for await (const { items } of pagesOf((cursor?: string) => commentsPage(ref, cursor, context))) …
 */
export async function* pagesOf<T, C = string>(page: (cursor: C | undefined) => Promise<Page<T, C>>) {
  let cursor: C | undefined
  for (let pages = 0, empty = 0; pages < PAGES_MOST && empty < EMPTY_PAGES; pages++) {
    const found = await page(cursor)
    if (!Array.isArray(found.items)) {
      const message = 'the vendor’s reply must contain a list'
      throw new AgentError(message, { code: 'unexpected_reply', hint: ADDRESS })
    }
    yield found
    if (found.next === undefined || found.next === null) return
    if (isSame(found.next, cursor)) break
    empty = found.items.length === 0 ? empty + 1 : 0
    cursor = found.next
  }
  const hint = 'narrow the query, or set a smaller `limit`'
  throw new AgentError('the vendor’s pages never end', { code: 'endless', hint })
}

/** Turns the steps of a generator into pages. One step is read ahead, so that the last page is known to be the last. */
export async function stepsOf<T>(steps: AsyncIterator<T[]>): Promise<(cursor?: number) => Promise<Page<T, number>>> {
  let ahead = await steps.next()
  return async (step = 0) => {
    const items = ahead.done ? [] : ahead.value
    ahead = await steps.next()
    return { items, next: ahead.done ? null : step + 1 }
  }
}

function isSame(cursor: unknown, other: unknown): boolean {
  return JSON.stringify(cursor) === JSON.stringify(other)
}

/** A type instead of an interface, because an interface is not assignable to Json. */
export type Listing = {
  items: Json[]
  /** The number of items that the vendor reports, or else the number that were read. */
  total: number
  /** Whether the vendor or the file has more items than `items` contains. */
  truncated: boolean
}

/**
 * The schema of the `data` of a search or listing: what each of its items has, and what stands beside the items.
 * @example data: listingOf({ id: Type.String({ description: 'The id of the item.' }) })
 */
export function listingOf<P extends TProperties>(fields: P, beside: TProperties = {}) {
  return Type.Object({
    ...beside,
    items: Type.Array(Type.Object(fields), { description: 'What was found; the file has all of it.' }),
    total: Type.Integer({ description: 'How many there are, as far as the vendor says.' }),
    truncated: Type.Boolean({ description: 'Whether there are more than `items` has.' }),
  })
}

/** How a listing is written to its file. */
export interface ListingForm<T> {
  open: string
  item(item: T, at: number): string
  close(end: { total: number; truncated: boolean }): string
}

const JSON_FORM: ListingForm<unknown> = {
  open: '{"items":[',
  item: (item, at) => `${at === 0 ? '\n' : ',\n'}${JSON.stringify(item)}`,
  close: ({ total, truncated }) => `\n],"total":${total},"truncated":${truncated}}\n`,
}

export interface ListingRequest<T, C> {
  /** Name of the file. It is streamed and contains `{items, total, truncated}` with every item complete. */
  name: string
  /** Another form of the file. */
  form?: ListingForm<T>
  limit?: number | undefined
  /**
   * Reads the page at `cursor`; undefined means the first page. `wanted` is the number of items still needed, and
   * `fitting` how many make a page of moderate size, judged by the items read so far. The vendor may send more or fewer.
   */
  page(cursor: C | undefined, wanted: number, fitting: number): Promise<Page<T, C>>
  /** The part of an item that goes into `data`. */
  brief(item: T): Json
}

/**
 * Reads up to `limit` items (default 100) into a file, with one page in memory at a time, and returns the `data` of the
 * result. It stops when a page with items names itself as the next one: the items read so far are kept, and the listing
 * is marked `truncated`.
 * @example
 * const page = (cursor?: string) => searchPage(ref, cursor, context) // { items, next?, total? } const data = await
 * writeListing(context, { name, limit, page, brief: ({ id, title }) => ({ id, title }) })
 */
export async function writeListing<T, C = string>(
  context: AgentContext<unknown>,
  { name, form = JSON_FORM, limit = LIMIT, page, brief }: ListingRequest<T, C>,
): Promise<Listing> {
  const shown: Json[] = []
  let shownBytes = 0
  let read = 0
  let chars = 0
  let total = 0
  let truncated = false
  async function* texts() {
    let repeats = false
    const pages = pagesOf(async (cursor: C | undefined) => {
      const fitting = read === 0 ? FIRST_ITEMS : Math.max(1, Math.floor(PAGE_CHARS / (chars / read)))
      const found = await page(cursor, limit - read, fitting)
      repeats = cursor !== undefined && found.items.length > 0 && isSame(found.next, cursor)
      return repeats ? { ...found, next: null } : found
    })
    yield form.open
    for await (const found of pages) {
      const items = found.items.slice(0, limit - read)
      let text = ''
      for (const item of items) {
        const one = form.item(item, read++)
        chars += one.length
        text += one
        if (text.length > CHUNK) {
          yield text
          text = ''
        }
        const short = brief(item)
        shownBytes += Buffer.byteLength(JSON.stringify(short))
        if (shownBytes <= DATA_BYTES) shown.push(short)
      }
      yield text
      total = Math.max(total, found.total ?? 0, read)
      const more = found.next !== undefined && found.next !== null
      truncated = more || repeats || found.items.length > items.length || total > read
      if (read === limit) break
    }
    yield form.close({ total, truncated })
  }
  await context.write(name, streamOf(texts()))
  return { items: shown, total, truncated: truncated || shown.length < read }
}
