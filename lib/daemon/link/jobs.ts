// What this daemon does with the jobs of its hub. A dispatched run is recorded as held, and begins only when the hub
// has answered `accepted`: until then another daemon may get it, and afterwards none can. An order about a run is
// carried out once, and its answer is repeated until the hub has taken it.

import type { Static } from 'typebox'
import { backoff } from '../../backoff.ts'
import { CadreError, type Detail, messageOf } from '../../error.ts'
import type { RunId } from '../../files/run-id.ts'
import { isObject, type Json } from '../../json.ts'
import type { Log } from '../../log/log.ts'
import type { Decision } from '../../run/engine.ts'
import { matches, problems } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { type Masked, maskedJson } from '../../secrets/masked.ts'
import { type startPause, unlessAborted } from '../../wait.ts'
import { type Answer, OUTCOME } from '../../wire/calls/daemon-link.ts'
import {
  AnyLeasedJob,
  type CancelOrder,
  ORDERS,
  type ResumeOrder,
  type RunOrder,
  TELL,
  type TellOrder,
} from '../../wire/records/jobs.ts'
import { isOver } from './job-answers.ts'
import type { JobState, JobTable, JobToTake, TakenJob } from './job-table.ts'

/**
 * What jobs do to this daemon. Each method throws a CadreError, which is reported to the hub. To all of them, a run or
 * review that was not reported to the hub is not here.
 */
export interface JobHost {
  /** Leaf phases that could start now. */
  freeSlots(): number
  /** The same without the secrets that this daemon knows. */
  mask<T extends Json>(value: T): Masked<T>
  /** The attempt of a run; null when the run is not here. */
  attempt(runId: RunId): number | null
  /** Fetches what the run needs before it can start here. */
  prepare(order: RunOrder, runId: RunId): Promise<void>
  /** Starts the dispatched run, only once however often it is called. Resolves when the start is durable. */
  start(runId: RunId, order: RunOrder): Promise<void>
  ended(runId: RunId): Promise<unknown>
  /** `again`: an earlier process may already have done it. */
  cancel(runId: RunId, again: boolean, order: CancelOrder): Promise<unknown>
  resume(runId: RunId, order: ResumeOrder): Promise<unknown>
  decide(reviewId: string, decision: Decision): Promise<unknown>
  /** Tells people something, only once however often it is called with the id of one job. */
  tell(jobId: string, order: TellOrder): Promise<unknown>
}

export interface JobsOptions {
  book: JobTable
  host: JobHost
  log: Log
  signal: AbortSignal
  /** Sends an answer to the hub. Throws the hub's error, or `unavailable`. */
  ack(job: Pick<TakenJob, 'id' | 'lease_id'>, status: Answer, error: string | null): Promise<unknown>
  /** Called when the list of open jobs has changed. */
  changed(): void
  /** Starts the pauses before another try. */
  startPause: typeof startPause
  /** The lived time of the home. */
  lived(): number
}

/** What a job needs to be answered. */
const Answerable = Type.Object({ job_id: OUTCOME.job_id, lease_id: OUTCOME.lease_id })

/** The hub, the disk or this process cannot do it now; another try may. */
const LATER: readonly string[] = ['unavailable', 'rate_limited']

/** A job that is worked on. */
interface OpenJob {
  work: Promise<void>
  /** Ends the pause before the next try. */
  wake: () => void
  /** What the job needs meanwhile: a run that is held a slot and its lease, an order its lease. */
  needs: 'slot' | 'lease' | 'nothing'
  /** Settles when the job is no longer held. */
  decided: PromiseWithResolvers<void>
  /** Whether it was delivered again since the worker began. */
  came: boolean
}

export class Jobs {
  readonly #options: JobsOptions
  readonly #open = new Map<string, OpenJob>()

  constructor(options: JobsOptions) {
    this.#options = options
  }

  /** Goes on with the jobs of earlier processes. */
  start(): void {
    const { book } = this.#options
    book.forgetOld(this.#options.lived())
    for (const id of book.ids()) this.#go(id, true)
  }

  /** Records the jobs that the hub delivered, and works on them. One that this daemon cannot read is refused alone. */
  async take(delivered: readonly unknown[]): Promise<void> {
    const jobs = delivered.flatMap(each => this.#read(each) ?? [])
    await this.#options.book.take(jobs, this.#options.lived())
    for (const { job_id } of jobs) this.#go(job_id, false)
  }

  /** A delivered job as it is recorded. Null when it was refused. */
  #read(delivered: unknown): JobToTake | null {
    const { host } = this.#options
    try {
      if (!matches(AnyLeasedJob, delivered)) throw malformed(problems(AnyLeasedJob, delivered))
      const { by, job_id, kind } = delivered
      // What people are told is about no run: the id of the job stands there.
      const run_id = delivered.run_id ?? (kind === TELL ? (job_id as RunId) : null)
      if (run_id === null) throw malformed([{ path: '/run_id', message: 'is null' }])
      const payload = maskedJson(host.mask({ ...(by !== undefined && { by }), ...delivered.payload }))
      return { ...delivered, run_id, payload, run_attempt: host.attempt(run_id) }
    } catch (error) {
      this.#refuse(delivered, error)
      return null
    }
  }

  /** Says that a job is not taken: here, and to the hub as far as the job says which one it is. */
  #refuse(delivered: unknown, error: unknown): void {
    const { ack, log } = this.#options
    const { job_id, run_id } = isObject(delivered) ? delivered : {}
    log.warn('a job was refused', { job: inWords(job_id), run: inWords(run_id), error: messageOf(error) })
    if (!matches(Answerable, delivered)) return
    // Not repeated: a hub that delivers the job again gets the same answer again.
    const refusal = ack({ id: delivered.job_id, lease_id: delivered.lease_id }, 'failed', explain(error))
    refusal.catch(cause => log.debug('the hub did not take the refusal of a job', { error: messageOf(cause) }))
  }

  /** The ids of the jobs whose leases this daemon needs. */
  get leased(): string[] {
    return [...this.#open].filter(([, { needs }]) => needs !== 'nothing').map(([id]) => id)
  }

  /** How many slots the held runs will need. */
  get held(): number {
    return [...this.#open.values()].filter(({ needs }) => needs === 'slot').length
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ work }) => work))
  }

  #go(id: string, again: boolean): void {
    const known = this.#open.get(id)
    if (known) {
      known.came = true
      // A new lease makes a pause before the next question pointless.
      return known.wake()
    }
    const decided = Promise.withResolvers<void>()
    const open: OpenJob = { work: Promise.resolve(), wake: () => {}, needs: 'lease', decided, came: false }
    this.#open.set(id, open)
    // It begins once all jobs of a delivery are open, because one may be about the run of another.
    open.work = Promise.resolve().then(() => this.#workOff(id, open, again))
  }

  /** Works on a job until nothing is left to do, and no delivery has come meanwhile. Never throws. */
  async #workOff(id: string, open: OpenJob, again: boolean): Promise<void> {
    const { log, signal, changed } = this.#options
    try {
      await this.#work(id, open, again)
      while (open.came) {
        open.came = false
        open.decided.resolve()
        open.decided = Promise.withResolvers<void>()
        await this.#work(id, open, false)
      }
    } catch (error) {
      if (!signal.aborted) log.error('a job could not be worked on', { job: id, error: messageOf(error) })
    }
    // From here on, a delivery opens the job anew.
    this.#open.delete(id)
    open.decided.resolve()
    if (!signal.aborted) changed()
  }

  async #work(id: string, open: OpenJob, again: boolean): Promise<void> {
    const { book, changed, signal } = this.#options
    for (let job = book.get(id); job; job = book.get(id)) {
      signal.throwIfAborted()
      open.needs = needsOf(job)
      if (job.state !== 'held') open.decided.resolve()
      changed()
      if (job.state === 'begun') await this.#follow(job, open)
      else if (job.state !== 'held') return this.#reportEnd(job)
      else if (job.kind === 'run') await this.#begin(job)
      else await this.#carryOut(job, again)
    }
  }

  /** Asks the hub for a held run, and begins it when the hub agrees. */
  async #begin(job: TakenJob): Promise<void> {
    const { book, host, log } = this.#options
    if (host.attempt(job.run_id) !== null) {
      // An earlier process began it after the hub had agreed, or the hub is an older copy, which has to hear it again.
      await this.#answered(job, 'accepted')
      return await this.#move(job.id, 'begun')
    }
    const refused = await this.#refusal(job, async () => {
      const order = orderOf('run', job.payload)
      await host.prepare(order, job.run_id)
      const { taken, last } = await this.#answered(job, 'accepted')
      if (taken) {
        await host.start(job.run_id, order)
        return await book.move(job.id, 'begun')
      }
      await book.drop(last)
      log.info('a held run was dropped, because the hub no longer means this daemon', { run: job.run_id })
    })
    if (refused !== null) await this.#move(job.id, 'failed', refused)
  }

  /**
   * Waits for the end of a run that the hub has confirmed. A hub that delivers it once more was restored from an older
   * copy: unless it hears that the run is executed here, it gives the run to another daemon.
   */
  async #follow(job: TakenJob, open: OpenJob): Promise<void> {
    const { host, signal } = this.#options
    // Nothing is wrong when the run was deleted meanwhile.
    const ended = unlessAborted(host.ended(job.run_id), signal).catch(() => signal.throwIfAborted())
    for (let isOver = false; !isOver; ) {
      const { promise: delivered, resolve } = Promise.withResolvers<void>()
      open.wake = resolve
      isOver = await Promise.race([ended.then(() => true), delivered.then(() => false)])
      if (!isOver) await this.#answered(job, 'accepted')
    }
    await this.#move(job.id, 'done')
  }

  /** Carries out an order about a run that is here, or tells people something. */
  async #carryOut(job: TakenJob, again: boolean): Promise<void> {
    const { book, signal } = this.#options
    if (job.kind === TELL) {
      // From then on no other daemon tells it.
      const { taken, last } = await this.#answered(job, 'accepted')
      if (!taken) return await book.drop(last)
    }
    const holding = this.#open.get(book.holding(job.run_id) ?? '')
    // The run of a held job begins or is dropped first.
    if (holding) await unlessAborted(holding.decided.promise, signal)
    const refused = await this.#refusal(job, () => this.#perform(job, again))
    await this.#move(job.id, refused === null ? 'done' : 'failed', refused)
  }

  async #perform({ id, kind, run_id, payload, run_attempt }: TakenJob, again: boolean): Promise<unknown> {
    const { host } = this.#options
    switch (kind) {
      case 'cancel':
        return host.cancel(run_id, again, orderOf('cancel', payload))
      case 'resume': {
        // The new attempt that this order asked for has begun already.
        if (again && run_attempt !== null && (host.attempt(run_id) ?? 0) > run_attempt) return
        return host.resume(run_id, orderOf('resume', payload))
      }
      case 'decide': {
        const { review_id, ...decision } = orderOf('decide', payload)
        return host.decide(review_id, decision)
      }
      case TELL:
        return host.tell(id, orderOf(TELL, payload))
      default:
        throw new CadreError('invalid_request', `this daemon does not know jobs of kind ${kind}; upgrade the daemon`)
    }
  }

  /**
   * Why `work` cannot be done, in the words that the hub stores; null when it was done. It is tried again for as long
   * as only the moment is wrong.
   */
  async #refusal(job: TakenJob, work: () => Promise<unknown>): Promise<string | null> {
    const { log, signal } = this.#options
    for (let failures = 1; ; failures++) {
      try {
        await work()
        return null
      } catch (error) {
        signal.throwIfAborted()
        const { id, kind } = job
        if (!(error instanceof CadreError && LATER.includes(error.code))) {
          log.warn('a job was refused', { job: id, kind, error: messageOf(error) })
          return explain(error)
        }
        if (failures === 1) log.warn('a job has to wait; trying again', { job: id, kind, error: error.message })
        await this.#rest(id, failures)
      }
    }
  }

  async #reportEnd(job: TakenJob): Promise<void> {
    const { book } = this.#options
    const { taken, last } = await this.#answered(job, job.state === 'done' ? 'done' : 'failed', job.error)
    // Where the lease was over, the job may come once more, and then gets the same answer.
    if (taken || job.kind === 'run') await book.drop(last)
  }

  /**
   * Gives the hub an answer until it has replied. `taken` is false when the job is no longer this daemon's. `last` is the
   * delivery that the hub has replied about.
   */
  async #answered(
    { id, ...job }: TakenJob,
    status: Answer,
    error: string | null = null,
  ): Promise<{ taken: boolean; last: TakenJob }> {
    const { ack, book, log, signal } = this.#options
    for (let failures = 1; ; failures++) {
      const last = book.get(id)
      if (!last) return { taken: false, last: { id, ...job } }
      try {
        await ack(last, status, error)
        return { taken: true, last }
      } catch (cause) {
        signal.throwIfAborted()
        const over = isOver(cause)
        if (over && book.get(id)?.lease_id === last.lease_id) return { taken: false, last }
        if (failures === 1)
          log.warn('an answer has not reached the hub; trying again', { job: id, status, error: messageOf(cause) })
        if (!over) await this.#rest(id, failures)
      }
    }
  }

  /** Records what has come of a job. A full disk only delays that, because what was done must not be done again. */
  async #move(id: string, state: JobState, error: string | null = null): Promise<void> {
    const { book, log, signal } = this.#options
    for (let failures = 1; ; failures++) {
      try {
        return await book.move(id, state, error)
      } catch (cause) {
        signal.throwIfAborted()
        if (!(cause instanceof CadreError && LATER.includes(cause.code))) throw cause
        if (failures === 1) log.warn('a job cannot be recorded; trying again', { job: id, error: cause.message })
        await this.#rest(id, failures)
      }
    }
  }

  /** A growing pause, which a new delivery of the job ends. */
  async #rest(id: string, failures: number): Promise<void> {
    const { signal, startPause } = this.#options
    const { over, end } = startPause(backoff(failures), signal)
    this.#open.get(id)!.wake = end
    await over
    signal.throwIfAborted()
  }
}

function needsOf({ kind, state }: TakenJob): OpenJob['needs'] {
  if (state === 'begun') return 'nothing'
  return kind === 'run' && state === 'held' ? 'slot' : 'lease'
}

function malformed(details: readonly Detail[]): CadreError {
  const list = details.map(({ path, message }) => `${path.slice(1)} ${message}`).join('; ')
  return new CadreError('invalid_request', `the hub sent a job that this daemon cannot take: ${list}`)
}

/** An id of any form, as a log line has it. */
const inWords = (id: unknown): string => (JSON.stringify(id) ?? 'none').slice(0, 200)

/** The payload of a job of `kind`. Throws `invalid_request` when it does not have the form of that kind. */
function orderOf<K extends keyof typeof ORDERS>(kind: K, payload: unknown): Static<(typeof ORDERS)[K]> {
  const form = ORDERS[kind]
  if (matches(form, payload)) return payload
  const details = problems(form, payload)
  throw new CadreError('invalid_request', `the job of kind ${kind} does not have the form that this daemon knows`, {
    details,
  })
}

/** An error as the hub stores it with the job: the message, and the details that it does not contain itself. */
function explain(error: unknown): string {
  if (!(error instanceof CadreError)) return 'internal error; see the log of the daemon'
  return [error.message, ...error.besides.map(({ path, message }) => `${path} ${message}`)].join('; ')
}
