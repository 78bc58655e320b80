// Does calls in batches: those that come at the same time are done at once, where a hundred cost little more than one.

interface Waiting<Call, Result> {
  call: Call
  resolve(result: Result): void
  reject(error: unknown): void
}

interface BatcherOptions<Call, Result> {
  /** How many calls a batch has at most. */
  maxSize: number
  /** How many batches are done side by side. */
  concurrency: number
  /** Does all calls, or throws. Returns the results in the same order. */
  work(calls: Call[]): Promise<Result[]>
  /**
   * Whether `work` did nothing because of one of its calls. Each is then done alone, so that one keeps no other from
   * being done. After any other error it is not known what was done, or doing it again would not help.
   */
  isOfOne(error: unknown): boolean
}

export class Batcher<Call, Result> {
  readonly #options: BatcherOptions<Call, Result>
  #waiting: Waiting<Call, Result>[] = []
  #working = 0

  constructor(options: BatcherOptions<Call, Result>) {
    this.#options = options
  }

  do(call: Call): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.#waiting.push({ call, resolve, reject })
      if (this.#working === this.#options.concurrency) return
      this.#working++
      // Calls of this turn of the event loop come into the same batch.
      setImmediate(() => void this.#drain())
    })
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) await this.#doAll(this.#waiting.splice(0, this.#options.maxSize))
    this.#working--
  }

  async #doAll(batch: Waiting<Call, Result>[]): Promise<void> {
    try {
      const results = await this.#options.work(batch.map(({ call }) => call))
      for (const [at, { resolve }] of batch.entries()) resolve(results[at]!)
    } catch (error) {
      if (batch.length > 1 && this.#options.isOfOne(error)) for (const one of batch) await this.#doAll([one])
      else for (const { reject } of batch) reject(error)
    }
  }
}
