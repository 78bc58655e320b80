// The queue of the hub and the jobs of three daemons, with a clock and a network that a test drives: daemons poll, ask,
// begin, drop, are killed and start again, orders come, leases lapse, and every question or its reply may be lost. What
// must hold after each step is small: a run begins on one daemon at most, and only when the hub has given it to that
// daemon. In the end every run is complete or was cancelled, and no cancel was lost.

import { Database } from 'bun:sqlite'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { and, eq, inArray } from 'drizzle-orm'
import fc from 'fast-check'
import type { Db, Store } from '../../db/hub/store.ts'
import { readMigrations } from '../../db/open.ts'
import { JobTable, type TakenJob } from '../../lib/daemon/link/job-table.ts'
import { Jobs } from '../../lib/daemon/link/jobs.ts'
import { CadreError } from '../../lib/error.ts'
import { readRunId } from '../../lib/files/run-id.ts'
import type { JobRow } from '../../lib/hub/core/job-rows.ts'
import { enqueueJob, LEASE_MS, recordAnswers, renewLeases } from '../../lib/hub/queue/jobs.ts'
import { giveUpJobs } from '../../lib/hub/queue/undeliverable-jobs.ts'
import { livedMs } from '../../lib/lived-time.ts'
import { createLog } from '../../lib/log/log.ts'
import { createRedactor } from '../../lib/secrets/redact.ts'
import type { Answer } from '../../lib/wire/calls/daemon-link.ts'
import type { AnyLeasedJob } from '../../lib/wire/records/jobs.ts'
import { claim } from './claims.ts'
import { commitTo } from './commit.ts'

const DAEMONS = ['d0', 'd1', 'd2'] as const
const SLOTS = 2
/** After this many rounds of calm everything is over. */
const CALM_ROUNDS = 12

const migrations = await readMigrations(`${import.meta.dir}/../../db/daemon/migrations`)
const JOBS = migrations.find(({ name }) => name.endsWith('_jobs.sql'))!.sql
const log = createLog({ write: () => {} })

/** A question that is on its way to the hub. */
interface Ask {
  daemon: SimDaemon
  job: TakenJob
  status: Answer
  error: string | null
  answered: PromiseWithResolvers<void>
  /** Has fired when the daemon was killed meanwhile. */
  life: AbortSignal
}

interface SimRun {
  attempt: number
  over: Promise<void>
  end(): void
  ended: boolean
  cancelled: boolean
}

function newRun(attempt: number): SimRun {
  const { promise, resolve } = Promise.withResolvers<void>()
  const run: SimRun = { attempt, over: promise, ended: false, cancelled: false, end: () => {} }
  run.end = () => {
    run.ended = true
    resolve()
  }
  return run
}

class SimDaemon {
  readonly id: string
  readonly #world: World
  readonly #db = new Database(':memory:')
  /** What the engine of this daemon has on disk. */
  readonly runs = new Map<string, SimRun>()
  readonly #pauses = new Set<() => void>()
  #life = new AbortController()
  jobs!: Jobs
  /** Packages cannot be fetched now. */
  lacking = false

  constructor(id: string, world: World) {
    this.id = id
    this.#world = world
    this.#db.run(JOBS)
    this.#start()
  }

  kill(): void {
    this.#life.abort(new Error('killed'))
    this.endPauses()
    this.#start()
  }

  close(): void {
    this.#life.abort(new Error('closed'))
    this.endPauses()
    this.#db.close()
  }

  /** Jobs that are not over. Answers that the hub did not take are kept, because the job may come again. */
  get open(): number {
    const open = "SELECT count(*) AS count FROM jobs WHERE state IN ('held', 'begun') OR kind = 'run'"
    return this.#db.query<{ count: number }, []>(open).get()!.count
  }

  endPauses(): void {
    for (const end of [...this.#pauses]) end()
  }

  #start(): void {
    this.#life = new AbortController()
    const { signal: life } = this.#life
    this.jobs = new Jobs({
      book: new JobTable(this.#db, commitTo(this.#db, life)),
      log,
      signal: life,
      changed: () => {},
      ack: (job, status, error) => {
        const answered = Promise.withResolvers<void>()
        this.#world.asks.push({ daemon: this, job: job as TakenJob, status, error, answered, life })
        if (this.#world.without === 'hold' && status === 'accepted') answered.resolve()
        return answered.promise
      },
      lived: livedMs,
      startPause: (_, signal) => {
        const { promise: over, resolve } = Promise.withResolvers<void>()
        const end = () => {
          this.#pauses.delete(end)
          signal?.removeEventListener('abort', end)
          resolve()
        }
        this.#pauses.add(end)
        signal?.addEventListener('abort', end)
        return { over, end }
      },
      host: {
        freeSlots: () => SLOTS,
        mask: createRedactor().json,
        attempt: runId => this.runs.get(runId)?.attempt ?? null,
        prepare: async () => {
          if (this.lacking) throw new CadreError('unavailable', 'the package cannot be fetched')
        },
        start: async runId => {
          if (this.runs.has(runId)) return
          this.runs.set(runId, newRun(1))
          this.#world.began(runId, this)
        },
        ended: runId => this.runs.get(runId)!.over,
        cancel: async (runId, again) => {
          const run = this.runs.get(runId)
          if (!run) {
            this.#world.lostCancels.add(runId)
            throw new CadreError('not_found', `there is no run ${runId}`)
          }
          if (run.cancelled && (again || run.ended)) return
          if (run.ended) throw new CadreError('invalid_state', 'it has ended')
          run.cancelled = true
          run.end()
        },
        resume: async runId => {
          const run = this.runs.get(runId)
          if (!run?.ended) throw new CadreError('invalid_state', 'it has not ended')
          this.runs.set(runId, newRun(run.attempt + 1))
          this.#world.resumed.set(runId, (this.#world.resumed.get(runId) ?? 0) + 1)
        },
        decide: async () => {},
        tell: async () => {},
      },
    })
    this.jobs.start()
  }
}

/**
 * What the model can be told to leave out, to show that it notices: the hold begins a run without the hub's word, the
 * fence takes an answer under any lease.
 */
export type Mutant = 'hold' | 'fence'

/** The hub, its clock, the daemons, and what is on the way between them. */
class World {
  readonly #store: Store
  readonly #tx: Db
  readonly #realm: string
  readonly without: Mutant | null
  readonly asks: Ask[] = []
  readonly daemons = DAEMONS.map(id => new SimDaemon(id, this))
  readonly runs: string[] = []
  readonly #beginnings = new Map<string, SimDaemon[]>()
  /** Runs whose cancel reached a daemon that had no such run. */
  readonly lostCancels = new Set<string>()
  readonly resumed = new Map<string, number>()
  readonly #resumes = new Map<string, number>()
  #unchecked: string[] = []
  #now = 1_000_000

  constructor(store: Store, tx: Db, realm: string, without: Mutant | null) {
    this.without = without
    this.#store = store
    this.#tx = tx
    this.#realm = realm
  }

  began(runId: string, daemon: SimDaemon): void {
    this.#beginnings.set(runId, [...(this.#beginnings.get(runId) ?? []), daemon])
    this.#unchecked.push(runId)
  }

  pass(ms: number): void {
    this.#now += ms
  }

  async dispatch(pin: string | null): Promise<void> {
    const { runs } = this.#store
    const run_id = crypto.randomUUID()
    const place = { root_run_id: run_id, call_path: ['t'], call_depth: 0, tree_key: '', team: 't', inputs: {} }
    const row = { run_id, realm_id: this.#realm, ...place, state: 'queued' as const, attempt: 0, created_at: this.#now }
    const payload = { team: '@a/t@1.0.0', sha256: 'a'.repeat(64), inputs: {}, run_name: null, workspace: null }
    await this.#tx.insert(runs).values(row)
    const job = { realm_id: this.#realm, run_id, kind: 'run' as const, payload, created_by: 1, daemon_id: pin }
    await enqueueJob(this.#store, this.#tx, job, this.#now)
    this.runs.push(run_id)
  }

  /** As dispatch/cancel and dispatch/resume do. */
  async order(run_id: string, kind: 'cancel' | 'resume'): Promise<void> {
    const first = await this.#jobOf(run_id)
    const accepted = ['accepted', 'done'].includes(first.state)
    if (kind === 'resume' ? !accepted : !['waiting', 'leased', 'accepted'].includes(first.state)) return
    if (kind === 'resume') this.#resumes.set(run_id, (this.#resumes.get(run_id) ?? 0) + 1)
    const daemon_id = first.leased_to ?? null
    const order = { realm_id: this.#realm, run_id, kind, payload: {}, created_by: 1, daemon_id }
    await enqueueJob(this.#store, this.#tx, order, this.#now)
    if (kind === 'cancel' && first.state === 'waiting') await giveUpJobs(this.#store, this.#tx, this.#realm, this.#now)
  }

  async poll(daemon: SimDaemon, arrives: boolean): Promise<void> {
    const taker = { id: daemon.id, realm_id: this.#realm, workspaces: [], labels: null, agents: [], paused: false }
    const slots = Math.max(0, SLOTS - daemon.jobs.held)
    await giveUpJobs(this.#store, this.#tx, this.#realm, this.#now)
    const rows = await claim(this.#store, this.#tx, taker, slots, this.#now)
    if (arrives && rows.length > 0) await daemon.jobs.take(rows.map(leased))
  }

  async heartbeat(daemon: SimDaemon): Promise<void> {
    const ids = daemon.jobs.leased
    if (ids.length > 0) await renewLeases(this.#store, this.#tx, daemon.id, ids, this.#now)
  }

  /** Decides the fate of a question, as daemons/ack answers it. */
  async meet(ask: Ask, fate: 'arrives' | 'is lost' | 'gets no reply'): Promise<void> {
    const refusal = fate === 'is lost' ? null : await this.#answer(ask)
    // A killed daemon hears no answer.
    if (ask.life.aborted) return
    if (fate !== 'arrives') ask.answered.reject(new CadreError('unavailable', 'the hub does not answer'))
    else if (refusal) ask.answered.reject(refusal)
    else ask.answered.resolve()
  }

  async #answer({ daemon, job, status, error }: Ask): Promise<CadreError | null> {
    const known = { daemonId: daemon.id, leaseId: job.lease_id }
    const lease = this.without === 'fence' ? await this.#leaseOf(job.id, known) : known
    const given = { jobId: job.id, leaseId: lease.leaseId, status, ...(error !== null && { error }) }
    const by = { id: lease.daemonId, realm_id: this.#realm }
    const [verdict] = await recordAnswers(this.#store, this.#tx, by, [given], this.#now)
    if (verdict instanceof CadreError) return verdict
    const { state } = verdict!.job
    const { runs } = this.#store
    if (status === 'accepted' && state === 'accepted') {
      await this.#tx.update(runs).set({ daemon_id: daemon.id }).where(eq(runs.run_id, job.run_id))
    }
    return state === 'cancelled' ? new CadreError('conflict', 'the run was cancelled before it began') : null
  }

  /** Lets the daemons go on, and checks what began. */
  async turn(): Promise<void> {
    await nextTurn()
    for (const run of this.#unchecked.splice(0)) {
      const daemons = this.#beginnings.get(run)!.map(({ id }) => id)
      if (daemons.length > 1) throw new Error(`run ${run} began on ${daemons.join(' and ')}`)
      const job = await this.#jobOf(run)
      if (job.leased_to !== daemons[0] || !['accepted', 'done'].includes(job.state)) {
        throw new Error(`run ${run} began on ${daemons[0]}, but its job is ${job.state} for ${job.leased_to}`)
      }
    }
  }

  /** Everything arrives from now on, until all is over; then it is checked. */
  async calm(): Promise<void> {
    for (const daemon of this.daemons) daemon.lacking = false
    for (let round = 0; round < CALM_ROUNDS && !(await this.#isOver()); round++) {
      for (const daemon of this.daemons) {
        await this.poll(daemon, true)
        daemon.endPauses()
        await this.turn()
        for (const ask of this.asks.splice(0)) await this.meet(ask, 'arrives')
        await this.turn()
        for (const run of daemon.runs.values()) run.end()
        await this.turn()
      }
      this.pass(LEASE_MS)
    }
    await this.#checkEnd()
  }

  async #isOver(): Promise<boolean> {
    return (await this.#openJobs()).length === 0 && this.daemons.every(({ open }) => open === 0)
  }

  async #openJobs(): Promise<JobRow[]> {
    const { jobs } = this.#store
    const states = inArray(jobs.state, ['waiting', 'leased', 'accepted'])
    return this.#tx
      .select()
      .from(jobs)
      .where(and(eq(jobs.realm_id, this.#realm), states))
  }

  async #checkEnd(): Promise<void> {
    const open = await this.#openJobs()
    if (open.length > 0) throw new Error(`jobs are left: ${JSON.stringify(open)}`)
    for (const { id, open } of this.daemons) if (open > 0) throw new Error(`${id} has ${open} jobs left`)
    for (const run of this.runs) {
      const { state } = await this.#jobOf(run)
      const began = this.#beginnings.has(run)
      if (began !== (state === 'done'))
        throw new Error(`run ${run} ${began ? 'began' : 'never began'}, its job is ${state}`)
      if (began && this.lostCancels.has(run)) throw new Error(`the cancel of run ${run} was lost`)
      const [asked = 0, done = 0] = [this.#resumes.get(run), this.resumed.get(run)]
      if (done > asked) throw new Error(`run ${run} was resumed ${done} times, and ${asked} times were asked for`)
    }
  }

  async #jobOf(run: string): Promise<JobRow> {
    const { jobs } = this.#store
    const [row] = await this.#tx
      .select()
      .from(jobs)
      .where(and(eq(jobs.run_id, run), eq(jobs.kind, 'run')))
    return row!
  }

  /** The present lease of a job. */
  async #leaseOf<T>(id: string, otherwise: T) {
    const { jobs } = this.#store
    const [row] = await this.#tx.select().from(jobs).where(eq(jobs.id, id))
    return row?.leased_to && row.lease_id ? { daemonId: row.leased_to, leaseId: row.lease_id } : otherwise
  }

  close(): void {
    for (const daemon of this.daemons) daemon.close()
  }
}

function leased(row: JobRow): AnyLeasedJob {
  const { id: job_id, lease_id, deliveries: attempt, lease_until, kind, run_id, payload } = row
  return { job_id, lease_id: lease_id!, attempt, lease_until: lease_until!, kind, run_id: readRunId(run_id), payload }
}

/** The model knows how many runs there are; everything else is in the rules. */
interface Model {
  runs: number
}

type Step = fc.AsyncCommand<Model, World>

function step(name: string, run: (world: World) => void | Promise<void>, { needsRun = false, adds = 0 } = {}): Step {
  return {
    check: ({ runs }) => !needsRun || runs > 0,
    async run(model, world) {
      model.runs += adds
      await run(world)
      await world.turn()
    },
    toString: () => name,
  }
}

const daemon = fc.nat(DAEMONS.length - 1)
const any = fc.nat(1_000)
const fates = fc.constantFrom('arrives' as const, 'arrives' as const, 'is lost' as const, 'gets no reply' as const)

const steps = fc.commands(
  [
    fc
      .option(fc.constantFrom(...DAEMONS), { freq: 3 })
      .map(pin => step(`dispatch(${pin})`, world => world.dispatch(pin), { adds: 1 })),
    fc
      .tuple(daemon, fc.boolean())
      .map(([n, lost]) => step(`poll(${n}${lost ? ', lost' : ''})`, world => world.poll(world.daemons[n]!, !lost))),
    daemon.map(n => step(`poll(${n})`, world => world.poll(world.daemons[n]!, true))),
    ...[0, 1].map(() =>
      fc.tuple(any, fates).map(([n, fate]) =>
        step(`question ${n} ${fate}`, async world => {
          const [ask] = world.asks.splice(n % Math.max(1, world.asks.length), 1)
          if (ask) await world.meet(ask, fate)
        }),
      ),
    ),
    daemon.map(n => step(`tryAgain(${n})`, world => world.daemons[n]!.endPauses())),
    daemon.map(n => step(`heartbeat(${n})`, world => world.heartbeat(world.daemons[n]!))),
    daemon.map(n => step(`kill(${n})`, world => world.daemons[n]!.kill())),
    fc.tuple(daemon, fc.boolean()).map(([n, lacking]) =>
      step(`lacks(${n}, ${lacking})`, world => {
        world.daemons[n]!.lacking = lacking
      }),
    ),
    fc.constantFrom(1_000, LEASE_MS / 2, LEASE_MS).map(ms => step(`pass(${ms})`, world => world.pass(ms))),
    any.map(n =>
      step(
        `end(${n})`,
        world => {
          const id = world.runs[n % world.runs.length]!
          for (const { runs } of world.daemons) runs.get(id)?.end()
        },
        { needsRun: true },
      ),
    ),
    fc
      .tuple(any, fc.constantFrom('cancel' as const, 'resume' as const))
      .map(([n, kind]) =>
        step(`${kind}(${n})`, world => world.order(world.runs[n % world.runs.length]!, kind), { needsRun: true }),
      ),
  ],
  // Without the size, most sequences have fewer than ten steps, and few of them mean anything.
  { maxCommands: 60, size: 'max' },
)

/** Ends a sequence, so that the next one finds the database empty, and nothing is written to the disk. */
class Undo extends Error {}

/** Checks `count` sequences in a realm of their own. Stops at the first that breaks a rule when there is a mutant. */
export async function checkHolds(
  store: Store,
  count: number,
  seed: number,
  without: Mutant | null = null,
): Promise<void> {
  const { orgs, realms } = store
  const slug = `model-${without ?? 'whole'}`
  const org = { id: Math.ceil(Math.random() * 1e9), slug, display_name: 'Model', created_at: 1 }
  const realm = { id: crypto.randomUUID(), org_id: org.id, slug, name: 'Model', created_at: 1 }
  await store.write(async tx => {
    await tx.insert(orgs).values(org)
    await tx.insert(realms).values(realm)
  })
  const sequence = (commands: Iterable<Step>) => async (tx: Db) => {
    const world = new World(store, tx, realm.id, without)
    try {
      await fc.asyncModelRun(() => ({ model: { runs: 0 }, real: world }), commands)
      await world.calm()
    } finally {
      world.close()
    }
    throw new Undo()
  }
  const property = fc.asyncProperty(steps, async commands => {
    await store.write(sequence(commands)).catch(error => {
      if (!(error instanceof Undo)) throw error
    })
  })
  await fc.assert(property, { numRuns: count, seed, endOnFailure: without !== null })
}
