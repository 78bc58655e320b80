// When entries of the audit log are sealed: as soon as they are committed, by the process that wrote them. Where very many
// come at once, they gather between its rounds, so that sealing them costs little. A chore seals what this leaves.

/** A round that sealed more of them is followed by a pause. */
const MANY = 64
const GATHER_MS = 100

export class Sealing {
  #seal: (() => Promise<number>) | null = null
  #round: Promise<void> | null = null
  #due = false

  /** `seal` returns how many entries it sealed. Before this, as in a command, another process seals. */
  start(seal: () => Promise<number>): void {
    this.#seal = seal
    this.wake()
  }

  /** There may be entries to seal. */
  wake(): void {
    this.#due = true
    if (this.#seal) this.#round ??= this.#rounds()
  }

  /** Resolves when nothing is being sealed any more. */
  async stop(): Promise<void> {
    this.#seal = null
    await this.#round
  }

  async #rounds(): Promise<void> {
    while (this.#due && this.#seal) {
      this.#due = false
      try {
        if ((await this.#seal()) > MANY) await Bun.sleep(GATHER_MS)
      } catch {
        // The chore tries again within two seconds, and says what fails.
      }
    }
    this.#round = null
  }
}
