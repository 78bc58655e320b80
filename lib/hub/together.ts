// Work of one kind that is asked for at the same time is done at once, where a hundred pieces cost little more than one.

interface Waiting<Piece, Result> {
  piece: Piece
  resolve(result: Result): void
  reject(error: unknown): void
}

export class Together<Piece, Result> {
  readonly #most: number
  readonly #work: (pieces: Piece[]) => Promise<Result[]>
  #waiting: Waiting<Piece, Result>[] = []
  #working = false

  /**
   * `work` does at most `most` pieces wholly, or throws and has done none. It returns the results in the same order. When
   * it throws, each piece is done alone, so that one that cannot be done keeps no other from being done.
   */
  constructor(most: number, work: (pieces: Piece[]) => Promise<Result[]>) {
    this.#most = most
    this.#work = work
  }

  do(piece: Piece): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.#waiting.push({ piece, resolve, reject })
      if (this.#working) return
      this.#working = true
      // What is asked for in this turn of the event loop is done together.
      setImmediate(() => void this.#drain())
    })
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) await this.#doAll(this.#waiting.splice(0, this.#most))
    this.#working = false
  }

  async #doAll(some: Waiting<Piece, Result>[]): Promise<void> {
    try {
      const results = await this.#work(some.map(({ piece }) => piece))
      for (const [at, { resolve }] of some.entries()) resolve(results[at]!)
    } catch (error) {
      if (some.length === 1) some[0]!.reject(error)
      else await Promise.all(some.map(one => this.#doAll([one])))
    }
  }
}
