// The runs that had not ended when this process took the home: it continues them, or they stay interrupted until somebody
// asks for them.

import { CadreError } from '../../error.ts'
import { commandLine } from '../../program/called-as.ts'
import type { Engine } from '../../run/engine.ts'
import { homeIsFull } from '../home/full-disk.ts'

/** How long a start waits for its first write before it reports that the disk is full. */
const FULL_MS = 2_000

export class OpenRuns {
  readonly #home: string
  readonly #engine: Engine
  /** Top runs that no process continues. */
  readonly #interrupted = new Set<string>()

  constructor(home: string, engine: Engine) {
    this.#home = home
    this.#engine = engine
  }

  /** Top runs that have not ended. */
  get roots(): string[] {
    return this.#engine.store.runs.openRootIds()
  }

  get interrupted(): readonly string[] {
    return [...this.#interrupted]
  }

  isInterrupted(rootId: string): boolean {
    return this.#interrupted.has(rootId)
  }

  /**
   * Continues every run that has not ended, or with `none` no run. The others, and the runs that a copied home holds back,
   * stay interrupted. Throws `unavailable` when the disk is full.
   */
  async recover({ none = false } = {}): Promise<void> {
    const held = new Set(this.#engine.store.copies.held())
    const isWanted = (id: string) => !none && !held.has(id)
    for (const id of this.roots) if (!isWanted(id)) this.#interrupted.add(id)
    const recovered = this.#engine.recover(isWanted)
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      // A slow start does not mean a full disk: a home with many open runs takes longer than the limit.
      const { stalled } = this.#engine.load
      if (stalled) late.reject(homeIsFull(this.#home, stalled))
    }, FULL_MS)
    await Promise.race([recovered, late.promise]).finally(() => clearTimeout(timer))
  }

  /**
   * Continues the tree of an interrupted run. Nothing happens to any other run. A run that a copied home holds back is
   * continued only if a person has asked for that run (`isAsked`); otherwise this throws `invalid_state`.
   */
  async continueTree(runId: string, { isAsked = false } = {}): Promise<void> {
    const { runs, copies } = this.#engine.store
    const root = runs.get(runId)?.root_id
    if (root === undefined || !this.#interrupted.has(root)) return
    const isHeld = copies.isHeld(root)
    if (isHeld && !isAsked) throw heldBack(root)
    this.#interrupted.delete(root)
    try {
      const released = isHeld && this.#engine.commit(() => copies.release(root))
      await Promise.all([released, this.#engine.recover(id => id === root)])
    } catch (error) {
      this.#interrupted.add(root)
      throw error
    }
  }
}

function heldBack(root: string): CadreError {
  const way = `resume it first with \`${commandLine('resume', root)}\``
  return new CadreError(
    'invalid_state',
    `run ${root} was unfinished when this home was copied, and the original home may have continued it: ${way}`,
  )
}
