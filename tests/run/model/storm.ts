// Random teams on a real daemon against the reference model, many at once: they are started, cancelled and resumed, and
// the daemon is killed meanwhile. Team N of a seed is always the same, with the same requests and the same world, so a
// range of teams can be repeated.

import type { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { brokenInvariants } from '../../../lib/run/store/invariants.ts'
import type { ResumePlan } from '../../../lib/wire/records/resume-plan.ts'
import { type RunningDaemon, spawnDaemon } from '../../support/daemon.ts'
import { folder } from '../../support/folder.ts'
import { openHome, pendingReviews } from '../../support/home-rows.ts'
import { type Random, randomFrom } from '../../support/random.ts'
import { type Called, type ModelRun, type Request, repeatedOf, resumeOf, startOf, type World } from './model.ts'
import { observedRun } from './observed.ts'
import { type ModelPhase, teamFiles, teamOf } from './teams.ts'
import { AGENT, ServedWorld } from './world.ts'

export interface Toll {
  teams: number
  attempts: number
  resumes: { plain: number; failed: number; from: number; refused: number }
  cancels: number
  kills: number
  runs: number
  calls: number
  tickets: number
}

export const newToll = (): Toll => ({
  ...{ teams: 0, attempts: 0, cancels: 0, kills: 0, runs: 0, calls: 0, tickets: 0 },
  resumes: { plain: 0, failed: 0, from: 0, refused: 0 },
})

/** Teams that run at once. */
const BATCH = 50
const ROUNDS = 4
const DEPTH = 2
/** One round in so many has a kill. */
const KILLS = 6
const CANCELS = 8
const PATIENCE_MS = 120_000

/** A team, from its start to its last resume. */
interface Course {
  number: number
  name: string
  random: Random
  team: ModelPhase[]
  runId: string
  /** How its last attempt ended. */
  ended: ModelRun | null
  /** What the present attempt must come to, and call. */
  expected: ModelRun | null
  called: Called
  isCancelled: boolean
  /** What the present attempt was to do by its plan, and the rows before it. */
  planned: { plan: ResumePlan; rows: Rows } | null
}

/** Runs teams `from` to `from + count` of a seed. Throws with the number of the first team that is not as the model says. */
export async function modelStorm(
  { seed, from, count }: { seed: number; from: number; count: number },
  toll = newToll(),
  onBatch: (next: number) => void = () => {},
): Promise<Toll> {
  const world = new ServedWorld(seed)
  const home = folder()
  mkdirSync(join(home, 'agents'))
  writeFileSync(join(home, 'agents/world.ts'), AGENT)
  writeFileSync(join(home, 'settings.yml'), `agents: { world: { url: '${world.url}' } }\n`, { mode: 0o600 })
  const storm = new Storm(home, seed, world, toll)
  try {
    await storm.open()
    for (let first = from; first < from + count; first += BATCH) {
      await storm.batch(first, Math.min(BATCH, from + count - first))
      onBatch(Math.min(first + BATCH, from + count))
    }
    return toll
  } finally {
    await storm.close()
    await world.stop()
  }
}

class Storm {
  readonly #home: string
  readonly #seed: number
  readonly #world: ServedWorld
  readonly #toll: Toll
  #daemon!: RunningDaemon
  #db!: Database

  constructor(home: string, seed: number, world: ServedWorld, toll: Toll) {
    this.#home = home
    this.#seed = seed
    this.#world = world
    this.#toll = toll
  }

  async open(): Promise<void> {
    this.#daemon = await spawnDaemon({ home: this.#home, env: { CADRE_LOG_LEVEL: 'error' } })
    this.#db = openHome(this.#home)
  }

  async close(): Promise<void> {
    this.#db?.close()
    await this.#daemon?.kill('SIGKILL')
  }

  async batch(first: number, size: number): Promise<void> {
    const random = randomFrom(this.#seed * 31 + first)
    const courses = Array.from({ length: size }, (_, n) => this.#course(first + n))
    for (let round = 0; round < ROUNDS; round++) {
      const going = []
      for (const course of courses) {
        const isGoing = round === 0 ? await this.#start(course) : await this.#resume(course)
        if (isGoing) going.push(course)
      }
      const isKilled = random.once(KILLS)
      if (isKilled) {
        await Bun.sleep(random.below(250))
        await this.#kill()
      }
      await this.#untilEnded(going)
      for (const course of going) this.#check(course, isKilled)
    }
    expect(brokenInvariants(this.#db)).toEqual([])
    for (const { name, runId } of courses) {
      this.#world.forget(name)
      await this.#daemon.call('/v1/runs/delete', { run_id: runId })
      rmSync(join(this.#home, 'teams', name), { recursive: true })
    }
    this.#toll.teams += size
  }

  #course(number: number): Course {
    const random = randomFrom(Bun.hash.crc32(`${this.#seed} ${number}`))
    const team = teamOf(random, DEPTH)
    const name = `t${number}`
    for (const [path, text] of Object.entries(teamFiles(team))) {
      const file = join(this.#home, 'teams', name, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
    }
    const nothing = { runId: '', ended: null, expected: null, called: new Set<string>(), planned: null }
    return { number, name, random, team, isCancelled: false, ...nothing }
  }

  async #start(course: Course): Promise<boolean> {
    const { name, team } = course
    const path = join(this.#home, 'teams', name)
    this.#expect(course, (world, called) => startOf(team, name, 0, world, called))
    const { run_id } = await this.#daemon.call('/v1/runs/start', { path, inputs: { path: name, n: 0 } })
    course.runId = run_id
    await this.#perhapsCancel(course)
    return true
  }

  /** Asks for a resume by chance, with its plan. False where the model says that it is refused. */
  async #resume(course: Course): Promise<boolean> {
    const { name, team, ended, random, runId } = course
    const plain = { from: null, failed: false }
    const request: Request = random.of([
      ended!.state === 'completed' && !random.once(4) ? { from: null, failed: true } : plain,
      { from: null, failed: true },
      { from: random.below(team.length), failed: random.once(4) },
    ])
    const body = {
      run_id: runId,
      ...(request.from !== null && { from_phase: `p${request.from}` }),
      ...(request.failed && { failed: true }),
    }
    const expected = this.#expect(course, (world, called) => resumeOf(team, name, ended!, request, world, called))
    const { resumes } = this.#toll
    if (!expected) {
      for (const plan of [true, false]) {
        const { status } = await this.#daemon.post('/v1/runs/resume', { ...body, plan })
        this.#same(course, [status], [409])
      }
      resumes.refused++
      return false
    }
    const plan = await this.#daemon.call<ResumePlan>('/v1/runs/resume', { ...body, plan: true })
    const made = repeatedOf(team, ended!, request)
    const names = (repeats: boolean) => team.flatMap((_, at) => ((made[at] !== 'keep') === repeats ? [`p${at}`] : []))
    const planned = [plan.kept, plan.repeated].map(list => list.map(({ phase }) => phase))
    this.#same(course, planned, [names(false), names(true)], { request, ended })
    course.planned = { plan, rows: rowsOf(this.#db, runId) }
    await this.#daemon.call('/v1/runs/resume', body)
    resumes[request.from !== null ? 'from' : request.failed ? 'failed' : 'plain']++
    await this.#perhapsCancel(course)
    return true
  }

  #expect(course: Course, of: (world: World, called: Called) => ModelRun | null): ModelRun | null {
    course.called = new Set()
    course.isCancelled = false
    course.planned = null
    course.expected = of(this.#world.begin(course.name), course.called)
    return course.expected
  }

  async #perhapsCancel(course: Course): Promise<void> {
    const after = course.random.below(60)
    if (!course.random.once(CANCELS)) return
    await Bun.sleep(after)
    const { status } = await this.#daemon.post('/v1/runs/cancel', { run_id: course.runId })
    // It may have ended before.
    course.isCancelled = status === 200
    if (course.isCancelled) this.#toll.cancels++
  }

  async #kill(): Promise<void> {
    await this.#daemon.kill('SIGKILL')
    this.#toll.kills++
    this.#daemon = await spawnDaemon({ home: this.#home, env: { CADRE_LOG_LEVEL: 'error' } })
  }

  /** Answers every question until all have ended. */
  async #untilEnded(courses: readonly Course[]): Promise<void> {
    const open = this.#db.query<{ id: string }, []>(
      'SELECT id FROM runs WHERE parent_id IS NULL AND completed_at IS NULL',
    )
    const deadline = performance.now() + PATIENCE_MS
    for (;;) {
      for (const review of pendingReviews(this.#db)) await this.#answer(review.id, review)
      const ids = new Set(open.all().map(({ id }) => id))
      if (ids.size === 0) return
      const names = courses.flatMap(({ name, runId }) => (ids.has(runId) ? [name] : []))
      if (performance.now() > deadline) throw new Error(`seed ${this.#seed}: ${names} are still open`)
      await Bun.sleep(30)
    }
  }

  async #answer(reviewId: string, { run_id, position, kind }: { run_id: string; position: number; kind: string }) {
    const row = this.#db.query<{ inputs: string }, [string]>('SELECT inputs FROM runs WHERE id = ?').get(run_id)!
    const path = `${JSON.parse(row.inputs).path}/p${position}`
    const approval = this.#world.approves(path) ? 'approve' : 'reject'
    const decision = kind === 'gate' ? approval : this.#world.answers(path)
    const headers = { authorization: `Bearer ${this.#daemon.token}` }
    const { status } = await this.#daemon.post('/v1/reviews/decide', { review_id: reviewId, decision }, headers)
    // The run may have been cancelled meanwhile.
    if (status !== 200 && status !== 409) throw new Error(`${path}: the answer ${decision} got ${status}`)
  }

  #check(course: Course, isKilled: boolean): void {
    const { name, team, runId, expected, called, isCancelled } = course
    const observed = observedRun(this.#db, team, runId)
    const calls = this.#world.calls(name)
    const { state } = observed
    this.#toll.attempts++
    this.#toll.runs += observed.count
    for (const times of calls.values()) this.#toll.calls += times
    for (const [path, times] of this.#world.tickets) {
      if (!path.startsWith(`${name}/`)) continue
      this.#same(course, [path, times], [path, 1])
      if (calls.has(path)) this.#toll.tickets++
    }
    if (!isCancelled) {
      this.#same(course, shape(team, observed, expected!), shape(team, expected!, expected!), { before: course.ended })
      this.#same(course, [...calls.keys()].sort(), [...called].sort(), { before: course.ended })
      if (!isKilled) for (const [path, times] of calls) this.#same(course, [path, times <= 2], [path, true])
    } else {
      // An `always` phase may do something else then than it would have done.
      this.#same(course, [['cancelled', expected!.state].includes(state)], [true])
    }
    this.#checkPlan(course)
    course.ended = observed
  }

  /** The attempt did what its plan said: what was to stay is as it was, and the rest is not. */
  #checkPlan(course: Course): void {
    if (!course.planned) return
    const { plan, rows: before } = course.planned
    const after = rowsOf(this.#db, course.runId)
    const isSame = ({ phase }: { phase: string }) => Bun.deepEquals(before.phases.get(phase), after.phases.get(phase))
    this.#same(
      course,
      plan.kept.map(isSame),
      plan.kept.map(() => true),
      { plan },
    )
    this.#same(
      course,
      plan.repeated.map(isSame),
      plan.repeated.map(() => false),
      { plan },
    )
    for (const { phase, whole, runs } of plan.repeated) {
      const { takes, kind } = course.team[Number(phase.slice(1))]!
      // Other inputs, which a plan cannot know, repeat more.
      if (whole || !runs || takes !== null || kind === 'slow') continue
      const kept = before.children.filter(
        child => child.phase === phase && after.attempts.get(child.id) === child.attempt,
      )
      const hasBegun = after.phases.get(phase)!.state === 'completed'
      this.#same(course, [hasBegun ? kept.length === runs.kept : kept.length >= runs.kept], [true], { plan, phase })
    }
    const stays = new Set(plan.kept.map(({ phase }) => phase))
    for (const { id, attempt, phase } of before.children) {
      if (stays.has(phase)) this.#same(course, [id, after.attempts.get(id)], [id, attempt], { plan })
    }
  }

  /** The two are the same, or the team is named. */
  #same(course: Course, is: unknown, must: unknown, more: object = {}): void {
    if (Bun.deepEquals(is, must)) return
    const team = JSON.stringify(course.team)
    console.error(`seed ${this.#seed}, team ${course.number}: ${team}\n${JSON.stringify(more, mapsToo)}`)
    expect(is).toEqual(must)
  }
}

interface Rows {
  phases: Map<string, { state: string }>
  /** The runs directly below, by their attempts. */
  children: { id: string; phase: string; attempt: number }[]
  attempts: Map<string, number>
}

function rowsOf(db: Database, runId: string): Rows {
  const phases = db
    .query<{ position: number; state: string }, [string]>(
      'SELECT position, state, attempt, started_at, completed_at FROM phases WHERE run_id = ?',
    )
    .all(runId)
  const children = db
    .query<Rows['children'][number], [string]>(
      `SELECT child.id, child.parent_phase AS phase, child.attempt FROM runs AS child JOIN phases
         ON phases.run_id = parent_id AND phases.position = parent_position
       WHERE parent_id = ? AND (total IS NULL OR item < total)`,
    )
    .all(runId)
  return {
    phases: new Map(phases.map(row => [`p${row.position}`, row])),
    children,
    attempts: new Map(children.map(({ id, attempt }) => [id, attempt])),
  }
}

const mapsToo = (_: string, value: unknown) => (value instanceof Map ? Object.fromEntries(value) : value)

/**
 * What is compared. What a map that stopped did not begin again is cancelled. Sub-runs of a phase that is skipped say
 * nothing of it: the resume may have opened them before.
 */
function shape(team: ModelPhase[], run: ModelRun, expected: ModelRun): unknown {
  return {
    state: run.state,
    n: run.n,
    phases: team.map((phase, at) => {
      const { state, reason, value, items, runs } = run.phases[at]!
      const must = expected.phases[at]
      const hasRuns = must?.state !== 'skipped' && (phase.kind === 'team' || phase.kind === 'map')
      const below = hasRuns ? (items ?? (phase.kind === 'team' ? [''] : [])) : []
      const shown = below.map(key => {
        const child = runs.get(key)
        const wanted = must?.runs.get(key)
        if (!child) return [key, null]
        return [key, wanted?.state === 'cancelled' ? child.state : shape(phase.team, child, wanted ?? child)]
      })
      return [state, reason, state === 'completed' ? value : 0, ...shown]
    }),
  }
}
