// Work of one kind that is asked for at the same time is done at once, where a hundred pieces cost little more than one.

interface Waiting<Piece, Result> {
  piece: Piece
  resolve(result: Result): void
  reject(error: unknown): void
}

export interface TogetherOptions<Piece, Result> {
  /** How many pieces are done at once. */
  most: number
  /** How many groups are done side by side. */
  lanes: number
  /** Does all pieces, or throws. Returns the results in the same order. */
  work(pieces: Piece[]): Promise<Result[]>
  /**
   * Whether `work` did nothing because of one of its pieces. Each is then done alone, so that one keeps no other from
   * being done. After any other error it is not known what was done, or doing it again would not help.
   */
  isOfOne(error: unknown): boolean
}

export class Together<Piece, Result> {
  readonly #options: TogetherOptions<Piece, Result>
  #waiting: Waiting<Piece, Result>[] = []
  #working = 0

  constructor(options: TogetherOptions<Piece, Result>) {
    this.#options = options
  }

  do(piece: Piece): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.#waiting.push({ piece, resolve, reject })
      if (this.#working === this.#options.lanes) return
      this.#working++
      // What is asked for in this turn of the event loop is done together.
      setImmediate(() => void this.#drain())
    })
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) await this.#doAll(this.#waiting.splice(0, this.#options.most))
    this.#working--
  }

  async #doAll(some: Waiting<Piece, Result>[]): Promise<void> {
    try {
      const results = await this.#options.work(some.map(({ piece }) => piece))
      for (const [at, { resolve }] of some.entries()) resolve(results[at]!)
    } catch (error) {
      if (some.length > 1 && this.#options.isOfOne(error)) for (const one of some) await this.#doAll([one])
      else for (const { reject } of some) reject(error)
    }
  }
}
