// Searches and listings: pages one after the other, into a file with every item whole and a `data` that is bounded.

import type { Json } from '../json.ts'
import { Type } from '../type.ts'
import { type AgentContext, AgentError } from './define.ts'
import { ADDRESS } from './json-api.ts'

/**
 * The field `limit` of every search and listing.
 * @example entry: entryOf({ ref: Type.String(), limit: Limit })
 */
export const Limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 }))
/** Where an entry gives none. */
export const LIMIT = 100

/** What `data` holds of a listing's items; all of them, whole, are in its file. */
export const DATA_BYTES = 384 * 1024
/** Pages without an item, one after the other, before a listing counts as one that never ends. */
const EMPTY_PAGES = 20
/** Pages in all, however many items they hold. */
const PAGES_MOST = 10_000

export interface Page<T, C> {
  items: readonly T[]
  /** What asks for the page after this one; null or undefined at the end. */
  next?: C | null | undefined
  /** Of all items, where the vendor counts them. */
  total?: number | undefined
}

/**
 * Pages one after the other, until the last. Throws an AgentError `endless` when they lead nowhere.
 * @example for await (const { items } of pagesOf((cursor?: string) => commentsPage(ref, cursor, context))) …
 */
export async function* pagesOf<T, C = string>(page: (cursor: C | undefined) => Promise<Page<T, C>>) {
  let cursor: C | undefined
  for (let pages = 0, empty = 0; pages < PAGES_MOST && empty < EMPTY_PAGES; pages++) {
    const found = await page(cursor)
    if (!Array.isArray(found.items)) {
      const message = 'the vendor answered no list where one was asked for'
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

/** The steps of a generator as pages: one is read ahead, so that the last knows that it is. */
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

/** A type and no interface, so that it passes as Json. */
export type Listing = {
  items: Json[]
  /** As the vendor counts, else how many were read. */
  total: number
  /** There are more items outside, or in the file, than stand here. */
  truncated: boolean
}

export interface ListingRequest<T, C> {
  /** Name of the file: `{items, total, truncated}` with every item whole, streamed. */
  name: string
  limit?: number | undefined
  /** The page at `cursor` (undefined: the first). `wanted` items are still wanted; a vendor may send more or fewer. */
  page(cursor: C | undefined, wanted: number): Promise<Page<T, C>>
  /** What stands in `data` of an item. */
  brief(item: T): Json
}

/**
 * Reads pages up to `limit` (default 100) into a file, one page in memory at a time, and gives what `data` shows. It ends
 * where a page with items names itself as the next one: what was read stays, and it is `truncated`.
 * @example
 * const page = (cursor?: string) => searchPage(ref, cursor, context) // { items, next?, total? }
 * const data = await writeListing(context, { name, limit, page, brief: ({ id, title }) => ({ id, title }) })
 */
export async function writeListing<T, C = string>(
  context: AgentContext<unknown>,
  { name, limit = LIMIT, page, brief }: ListingRequest<T, C>,
): Promise<Listing> {
  const shown: Json[] = []
  let shownBytes = 0
  let read = 0
  let total = 0
  let truncated = false
  async function* texts() {
    let repeats = false
    const pages = pagesOf(async (cursor: C | undefined) => {
      const found = await page(cursor, limit - read)
      repeats = cursor !== undefined && found.items.length > 0 && isSame(found.next, cursor)
      return repeats ? { ...found, next: null } : found
    })
    yield '{"items":['
    for await (const found of pages) {
      const items = found.items.slice(0, limit - read)
      for (const item of items) {
        yield `${read++ === 0 ? '\n' : ',\n'}${JSON.stringify(item)}`
        const short = brief(item)
        shownBytes += Buffer.byteLength(JSON.stringify(short))
        if (shownBytes <= DATA_BYTES) shown.push(short)
      }
      total = Math.max(total, found.total ?? 0, read)
      const more = found.next !== undefined && found.next !== null
      truncated = more || repeats || found.items.length > items.length || total > read
      if (read === limit) break
    }
    yield `\n],"total":${total},"truncated":${truncated}}\n`
  }
  await context.write(name, streamOf(texts()))
  return { items: shown, total, truncated: truncated || shown.length < read }
}

function streamOf(texts: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await texts.next()
      if (done) controller.close()
      else controller.enqueue(Buffer.from(value))
    },
  })
}
