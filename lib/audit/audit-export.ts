// An audit log as lines of JSON: its entries in the order in which they were sealed, and for each chain a line where it
// begins and one where it ends. A later export goes on behind the `cursor` of any entry. It is read in pages, so that no
// other call waits for it.

import { type Chain, GENESIS, type Link, type Mark } from './audit-chain.ts'

/** An entry that is sealed, without what the export adds. */
export interface Sealed {
  /** Where it stands among the entries of all chains of its database. */
  position: number
  chain: string
  seq: number
  hash: string
  at: number
}

export interface AuditSource<Entry extends Sealed> {
  /** The chains with the position of their last entry, as they are now. */
  chains(): Promise<(Chain & { position: number })[]>
  /** How many entries of each chain are not sealed. */
  unsealed(): Promise<ReadonlyMap<string, number>>
  /** The entries behind the position `after`, in order, at most `most`. */
  entries(after: number, most: number): Promise<Entry[]>
  /** The last entry of a chain at or before a position. */
  before(chain: string, position: number): Promise<Link | null>
}

export interface AuditRange {
  /** The `cursor` of the last entry that the caller has. */
  cursor?: number
  /** Begins with the first entry of this time, and ends before the first one of that time; epoch milliseconds. */
  since?: number
  until?: number
  /** How many entries at most. */
  limit?: number
}

/** How many entries are read at once. */
const PAGE = 200
/** Entries are sealed in the order of time, except where clocks of several processes differ, by less than this. */
const DISORDER_MS = 3_600_000

export async function* auditLines<Entry extends Sealed>(
  source: AuditSource<Entry>,
  { cursor = 0, since, until, limit = Number.MAX_SAFE_INTEGER }: AuditRange,
): AsyncGenerator<object> {
  // What is sealed while this is read waits for the next export.
  const [chains, unsealed] = [await source.chains(), await source.unsealed()]
  const top = Math.max(0, ...chains.map(({ position }) => position))
  const from = Math.max(cursor, since === undefined ? 0 : await placeOf(source, since, top))
  const upTo = until === undefined ? top : await placeOf(source, until, top)
  const heads = new Map<string, Link>()
  let left = limit
  let after = from
  while (left > 0 && after < upTo) {
    const page = (await source.entries(after, Math.min(PAGE, left))).filter(({ position }) => position <= upTo)
    for (const { position, ...entry } of page) {
      const { chain, seq, hash } = entry
      if (!heads.has(chain)) yield await begin(chain)
      heads.set(chain, { seq, hash })
      yield { ...entry, cursor: position }
      after = position
    }
    left -= page.length
    if (page.length === 0) break
  }
  const isWhole = left > 0 && upTo === top
  if (isWhole) yield* forged(source, top)
  for (const { chain, seq, hash, position } of isWhole ? chains : []) {
    const isDue = position > from || from === 0
    if (isDue && !heads.has(chain)) yield await begin(chain)
    if (isDue) heads.set(chain, { seq, hash })
  }
  for (const [chain, count] of isWhole ? unsealed : []) {
    if (count === 0 || heads.has(chain)) continue
    yield await begin(chain)
    const known = chains.find(each => each.chain === chain) ?? GENESIS
    heads.set(chain, { seq: known.seq, hash: known.hash })
  }
  for (const [chain, { seq, hash }] of heads) {
    yield { type: 'end', chain, seq, hash, unsealed: unsealed.get(chain) ?? 0 } satisfies Mark
  }

  async function begin(chain: string): Promise<Mark> {
    const last = from === 0 ? null : await source.before(chain, from)
    const { seq, hash, at } = last ? { ...last, at: null } : anchorOf(chain)
    return { type: 'begin', chain, seq, hash, ...(at !== null && { removed_until: at }) }
  }

  function anchorOf(chain: string): Chain['anchor'] {
    return chains.find(each => each.chain === chain)?.anchor ?? { ...GENESIS, at: null }
  }
}

/** Entries behind the last one, where nothing was sealed meanwhile: who checks the export finds them. */
async function* forged<Entry extends Sealed>(source: AuditSource<Entry>, top: number) {
  const found = await source.entries(top, PAGE)
  if (found.length === 0) return
  const now = await source.chains()
  if (now.every(({ position }) => position <= top))
    for (const { position, ...entry } of found) yield { ...entry, cursor: position }
}

/** The position before the first entry that was recorded at `at` or later. */
async function placeOf(source: AuditSource<Sealed>, at: number, top: number): Promise<number> {
  let [low, high] = [0, top]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [next] = await source.entries(middle, 1)
    if (!next || next.at >= at - DISORDER_MS) high = middle
    else low = next.position
  }
  for (let after = low; ; ) {
    const page = await source.entries(after, PAGE)
    const found = page.findIndex(entry => entry.at >= at)
    if (found >= 0) return found === 0 ? after : page[found - 1]!.position
    const last = page.at(-1)
    if (!last) return top
    after = last.position
  }
}
