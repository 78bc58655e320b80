// Packages are checked in a thread of its own, one after the other: the thread that answers calls never waits for it.
// What takes too long is refused, and whoever has many packages waiting is told to come back.

import { CadreError, type Detail, type ErrorCode } from '../../error.ts'
import type { Field } from '../../team/team.ts'
import type { PackageFile } from '../../wire/packages.ts'

/** A package that was found good. */
export interface Checked {
  name: string
  version: string
  description: string
  inputs: Field[]
  files: PackageFile[]
  sha256: string
  bytes: number
  /** Names of the packages that it calls. */
  dependencies: string[]
}

/** A published package, for a team that calls it. */
export interface Found {
  name: string
  version: string
  files: PackageFile[]
}

/** What is to be checked. `scope`, when given, takes the place of `@local` in every team.yml. */
export interface Candidate {
  files: readonly PackageFile[]
  scope: string | undefined
}

export type ToWorker =
  | { setup: { home: string; extra: string | undefined } }
  | { check: Candidate }
  | { found: Found | null; ask: number }

export type FromWorker =
  | 'ready'
  | { find: string; ask: number }
  | { checked: Checked }
  | { refused: { code: ErrorCode; message: string; details: Detail[] | undefined } }
  | { failed: string }

/** A package of 10 MiB of teams takes some seconds. */
const LONGEST_MS = 60_000
/** Packages of one account that may wait at once. */
const MOST_WAITING = 4
/** All that the packages add up to which one package calls. */
const MOST_FOUND_BYTES = 40 * 1024 * 1024

export class PackageChecker {
  readonly #setup: { home: string; extra: string | undefined }
  readonly #longest: number
  readonly #waiting = new Map<number, number>()
  #worker: Promise<Worker> | null = null
  #last: Promise<unknown> = Promise.resolve()

  /** `home` and `extra`: where dropped-in agents lie, which teams may name. */
  constructor(setup: { home: string; extra: string | undefined }, longest = LONGEST_MS) {
    this.#setup = setup
    this.#longest = longest
  }

  /**
   * Throws `invalid_request` with every problem, `too_large` above a bound, `rate_limited` when the account has too many
   * waiting. `find` looks a package up that a team names.
   */
  async check(account: number, candidate: Candidate, find: (reference: string) => Promise<Found | null>) {
    const waiting = this.#waiting.get(account) ?? 0
    if (waiting >= MOST_WAITING) {
      throw new CadreError('rate_limited', `${waiting} packages of yours are being checked; wait for them`, {
        retryAfter: 5,
      })
    }
    this.#waiting.set(account, waiting + 1)
    const turn = this.#last.then(() => this.#check(candidate, find))
    this.#last = turn.catch(() => {})
    try {
      return await turn
    } finally {
      const left = this.#waiting.get(account)! - 1
      if (left === 0) this.#waiting.delete(account)
      else this.#waiting.set(account, left)
    }
  }

  async close(): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    ;(await worker?.catch(() => null))?.terminate()
  }

  async #check(candidate: Candidate, find: (reference: string) => Promise<Found | null>): Promise<Checked> {
    this.#worker ??= this.#start()
    const worker = await this.#worker.catch(error => {
      this.#worker = null
      throw error
    })
    const { promise, resolve, reject } = Promise.withResolvers<Checked>()
    const timer = setTimeout(() => {
      const seconds = Math.ceil(this.#longest / 1_000)
      reject(new CadreError('too_large', `the package takes longer than ${seconds} s to check: split it`))
    }, this.#longest)
    let bytes = 0
    /** The worker is done with this one; one that is not is ended, whatever it is at. */
    let over = false
    worker.onmessage = async ({ data }: MessageEvent<FromWorker>) => {
      if (data === 'ready') return
      over = !('find' in data)
      if ('checked' in data) return resolve(data.checked)
      if ('refused' in data) {
        const { code, message, details } = data.refused
        return reject(new CadreError(code, message, details && { details }))
      }
      if ('failed' in data) return reject(new Error(data.failed))
      try {
        const found = await find(data.find)
        bytes += found?.files.reduce((sum, each) => sum + each.content_base64.length, 0) ?? 0
        if (bytes > MOST_FOUND_BYTES) throw new CadreError('too_large', 'the packages that it calls are too large')
        worker.postMessage({ found, ask: data.ask } satisfies ToWorker)
      } catch (error) {
        reject(error)
      }
    }
    worker.onerror = ({ message }) => reject(new Error(`the check of a package failed: ${message}`))
    worker.postMessage({ check: candidate } satisfies ToWorker)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      if (!over) await this.close()
    }
  }

  #start(): Promise<Worker> {
    const worker = new Worker(new URL('./worker.ts', import.meta.url).href)
    worker.unref()
    const { promise, resolve, reject } = Promise.withResolvers<Worker>()
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => data === 'ready' && resolve(worker)
    worker.onerror = ({ message }) => reject(new Error(`packages cannot be checked: ${message}`))
    worker.postMessage({ setup: this.#setup } satisfies ToWorker)
    return promise
  }
}
