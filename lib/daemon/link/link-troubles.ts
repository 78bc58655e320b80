// What keeps the link to the hub from its work at present, by the step that failed. The log has each once; this is what
// is shown to those who ask how the link is.

import type { MaskedText } from '../../secrets/masked.ts'

interface LinkTrouble {
  /** What failed: `heartbeat`, `poll`, `sync`, `upload` or `offer`. */
  step: string
  /** The code of the error, `internal`, or `unanswered` where the hub did not answer. */
  code: string
  error: MaskedText
  /** Since when it has failed each time, in epoch milliseconds. */
  since: number
}

export class LinkTroubles {
  readonly #mask: (text: string) => MaskedText
  readonly #now: () => number
  readonly #troubles = new Map<string, LinkTrouble>()
  readonly #underWay = new Set<string>()

  constructor(mask: (text: string) => MaskedText, now: () => number = Date.now) {
    this.#mask = mask
    this.#now = now
  }

  /**
   * A poll that is under way counts as no failure: it waits half a minute for jobs before it succeeds, and heartbeats say
   * meanwhile whether the hub answers.
   */
  get all(): LinkTrouble[] {
    return [...this.#troubles.values()].filter(({ step }) => step !== 'poll' || !this.#underWay.has(step))
  }

  begun(step: string): void {
    this.#underWay.add(step)
  }

  failed(step: string, error: { code: string; message: string }): void {
    this.#underWay.delete(step)
    const { since = this.#now() } = this.#troubles.get(step) ?? {}
    this.#troubles.set(step, { step, code: error.code, error: this.#mask(error.message), since })
  }

  succeeded(step: string): void {
    this.#underWay.delete(step)
    this.#troubles.delete(step)
  }
}
