// Packages are checked one after the other in a separate thread, so that the thread that answers calls never waits. A
// package that takes too long is refused, and a user with too many waiting packages is asked to try again later.

import { CadreError, type Detail, type ErrorCode } from '../../error.ts'
import { thread } from '../../program/install-root.ts'
import type { DeclaredTrigger, Field } from '../../team/team.ts'
import type { ConcurrencyKey } from '../../wire/concurrency.ts'
import type { Environments, Needs } from '../../wire/needs.ts'
import type { PackageFile, Reach } from '../../wire/records/packages.ts'

/** The facts about a package that passed the check. */
export interface Checked {
  name: string
  version: string
  description: string
  inputs: Field[]
  /** What it needs of a daemon, with every team that it calls. */
  needs: Needs
  /** The key that its runs hold. */
  concurrency: ConcurrencyKey | null
  /** In which environments its team.yml says that it runs. */
  environments: Environments | null
  /** What its team.yml says may start it. */
  triggers: DeclaredTrigger[]
  files: PackageFile[]
  sha256: string
  bytes: number
  /** The names of the packages that it calls. */
  dependencies: string[]
  reach: Reach
}

/** A published package that is read for a team that calls it. */
export interface Found {
  name: string
  version: string
  files: PackageFile[]
}

/** A package to check. If `scope` is given, it replaces `@local` in every team.yml. */
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

/** A package of 10 MiB of teams takes several seconds. */
const LONGEST_MS = 60_000
/** The maximum number of waiting packages of one account. */
const MOST_WAITING = 4
/** The maximum total size of the packages that one package calls. */
const MOST_FOUND_BYTES = 40 * 1024 * 1024

export class PackageChecker {
  readonly #setup: { home: string; extra: string | undefined }
  readonly #longest: number
  readonly #waiting = new Map<number, number>()
  #worker: Promise<Worker> | null = null
  #last: Promise<unknown> = Promise.resolve()

  /** `home` and `extra` are the folders with the agents that the user added. Teams may name these agents. */
  constructor(setup: { home: string; extra: string | undefined }, longest = LONGEST_MS) {
    this.#setup = setup
    this.#longest = longest
  }

  /**
   * Throws `invalid_request` with every problem, `too_large` when a limit is exceeded, and `rate_limited` when too many
   * packages of the account are waiting. `find` looks up a package that a team names.
   */
  async check(account: number, candidate: Candidate, find: (reference: string) => Promise<Found | null>) {
    const waiting = this.#waiting.get(account) ?? 0
    if (waiting >= MOST_WAITING) {
      throw new CadreError(
        'rate_limited',
        `${waiting} of your packages are still being checked; wait until they are done`,
        {
          retryAfter: 5,
        },
      )
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
    /** Ends this check. A worker that is still busy is terminated, whatever it is doing. */
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
        if (bytes > MOST_FOUND_BYTES)
          throw new CadreError('too_large', 'the packages that this package calls are too large together')
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
    const worker = new Worker(thread('lib/hub/packages/worker.ts'))
    worker.unref()
    const { promise, resolve, reject } = Promise.withResolvers<Worker>()
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => data === 'ready' && resolve(worker)
    worker.onerror = ({ message }) => reject(new Error(`packages cannot be checked: ${message}`))
    worker.postMessage({ setup: this.#setup } satisfies ToWorker)
    return promise
  }
}
