// The hash chain of an audit log. Each entry that is sealed has a number and a hash over the hash before it and over
// itself, so that an entry that is changed, removed, inserted or moved later on breaks the chain from there on. Whoever
// can write the log can also make a whole new chain, which is noticed by those who have kept a hash of the old one.

import { canonicalJson, isObject } from '../json.ts'

/** A place in a chain: after its first `seq` entries, the last of which has `hash`. */
export interface Link {
  seq: number
  /** SHA-256 in small hexadecimal digits. */
  hash: string
}

/** Where every chain begins. */
export const GENESIS: Link = { seq: 0, hash: '0'.repeat(64) }

/**
 * The hash of an entry: SHA-256 of the hash before it, followed by the canonical JSON of the entry with its chain and its
 * number. Fields without a value do not count, so that entries keep their hash when a later version adds fields.
 */
export function sealOf(previous: string, entry: Readonly<Record<string, unknown>>): string {
  const given = Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== null && value !== undefined))
  return new Bun.CryptoHasher('sha256').update(previous + canonicalJson(given)).digest('hex')
}

/** A chain: its last entry, and the entry after which it begins since retention has removed those before. */
export interface Chain extends Link {
  chain: string
  anchor: Link & { at: number | null }
}

/** The lines of an export besides entries: where a chain begins in it, and where it ends. */
export interface Mark extends Link {
  type: 'begin' | 'end'
  chain: string
  /** `begin`: when the last entry was recorded that retention has removed. */
  removed_until?: number
  /** `end`: entries that are recorded and not sealed yet; they come with a later export. */
  unsealed?: number
}

/** The result of the check of a chain. */
export interface Checked {
  chain: string
  begin: Link & { removed_until?: number }
  /** The last entry up to which the chain is whole. */
  head: Link
  unsealed: number
  /** The first fault, and the line of the export that has it. */
  broken: { seq: number; line: number; why: string } | null
}

export interface Expected {
  /** A hash that a chain must have at its beginning or at one of its entries. */
  from?: string
}

/** Follows the lines of an export. After a fault, the rest of that chain is not looked at. */
export class ChainCheck {
  readonly #chains = new Map<string, Checked & { ended: boolean }>()
  readonly #sought: string | null
  #found = false
  #line = 0

  constructor({ from }: Expected = {}) {
    this.#sought = from ?? null
  }

  /** Takes the next line, parsed. Throws `SyntaxError` for a line that no export has. */
  take(line: unknown): void {
    this.#line++
    if (!isObject(line) || typeof line.chain !== 'string' || typeof line.seq !== 'number') {
      throw new SyntaxError(`line ${this.#line} is not one of an audit export`)
    }
    const { chain, seq } = line
    if (line.type === 'begin') return this.#begin(chain, { seq, hash: String(line.hash) }, line.removed_until)
    const known = this.#chains.get(chain) ?? this.#open(chain, GENESIS)
    if (known.broken) return
    if (line.type === 'end') this.#end(known, { seq, hash: String(line.hash) }, Number(line.unsealed ?? 0))
    else this.#entry(known, line)
  }

  /** What was found, in the order in which the chains came, and whether the expected hash was among it. */
  result(): { chains: Checked[]; found: boolean; whole: boolean } {
    const chains = [...this.#chains.values()].map(({ ended, ...chain }): Checked => {
      if (ended || chain.broken) return chain
      const why = 'the export stops before the end of the chain, so entries may be missing'
      return { ...chain, broken: { seq: chain.head.seq + 1, line: this.#line + 1, why } }
    })
    const found = this.#sought === null || this.#found
    return { chains, found, whole: found && chains.every(({ broken }) => broken === null) }
  }

  #open(chain: string, begin: Link, removed?: unknown) {
    const until = typeof removed === 'number' ? { removed_until: removed } : {}
    const fresh = { chain, begin: { ...begin, ...until }, head: begin, unsealed: 0, broken: null, ended: false }
    this.#chains.set(chain, fresh)
    this.#look(begin.hash)
    return this.#chains.get(chain)!
  }

  /** Exports that follow each other may be joined: each begins where the one before it ended. */
  #begin(chain: string, at: Link, removed: unknown): void {
    const known = this.#chains.get(chain)
    if (!known) return void this.#open(chain, at, removed)
    if (known.broken) return
    known.ended = false
    if (at.seq === known.head.seq && at.hash === known.head.hash) return
    this.#break(known, `the next part begins after entry ${at.seq}, but the one before it ends after ${known.head.seq}`)
  }

  #entry(known: Checked, line: Record<string, unknown>): void {
    const { hash, cursor: _, ...entry } = line
    const due = known.head.seq + 1
    if (entry.seq !== due) {
      return this.#break(
        known,
        `entry ${due} is due, but entry ${entry.seq} follows: some were removed, added or moved`,
      )
    }
    if (sealOf(known.head.hash, entry) !== hash) {
      return this.#break(known, 'the entry does not have its hash: it or the one before it was changed')
    }
    known.head = { seq: due, hash: String(hash) }
    this.#look(known.head.hash)
  }

  #end(known: Checked & { ended: boolean }, at: Link, unsealed: number): void {
    known.ended = true
    known.unsealed = unsealed
    if (at.seq === known.head.seq && at.hash === known.head.hash) return
    const { seq } = known.head
    this.#break(known, `the chain has ${at.seq} entries, but ${seq === at.seq ? 'another end' : `ends after ${seq}`}`)
  }

  #break(known: Checked, why: string): void {
    known.broken = { seq: known.head.seq + 1, line: this.#line, why }
  }

  #look(hash: string): void {
    if (hash === this.#sought) this.#found = true
  }
}
