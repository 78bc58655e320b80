// One stretch of the fault storm, as a process of its own: an engine on a home that others have used before, under agents
// and commands without manners, a disk that fills, a clock that jumps by days, and people who cancel, resume, decide and
// delete. It must start, answer, keep its slots, stop in time, and end by itself. Says on stderr what must not be, and
// exits 1.
//
//   bun tests/run/storm-engine.ts STRETCH (JSON)

import { appendFileSync, existsSync, readFileSync, statfsSync } from 'node:fs'
import { deleteTree } from '../../lib/daemon/runs/delete-tree.ts'
import { CadreError } from '../../lib/error.ts'
import { testEngine } from '../support/engine.ts'
import { ANSWERS, openHome, pendingReviews, rootsOf, treeOf } from '../support/home-rows.ts'
import { randomFrom } from '../support/random.ts'
import { quietAgent, type Wilderness, wildAgents } from './storm-agents.ts'
import { StormDisk } from './storm-disk.ts'
import { type Outside, wildTeam } from './storm-teams.ts'

export interface Stretch {
  home: string
  /** A file on another disk: the calls of the quiet agent. */
  calls: string
  /** A file beside it: top runs that somebody began to delete. */
  going: string
  outside: Outside
  seed: number
  ms: number
  /** Runs that nobody touches; null lets this stretch start them. */
  witnesses: Witnesses | null
  /** Nothing is started or decided any more, nobody misbehaves by not returning, and all that asks nobody has to end. */
  calm: boolean
  /** Masked wherever it is recorded. */
  secret: string
}

/** Runs by what they wait for. */
export interface Witnesses {
  gate: string
  retry: string
  stay: string
  done: string
}

const SLOTS = 8
const BUSY = 10
const DAY_MS = 24 * 3_600_000
/** Within this, a call is answered, a start is done, and a stop is over: generous, for a machine that does more. */
const PATIENCE_MS = 15_000
/** How long after its clock a phase may still run that does not heed it: 5 s, and some more on a busy machine. */
const GRACE_MS = 8_000
const RECORD_MS = 3_000
/** Most that the disk stays full. */
const FULL_MS = 800
/** In the calm something is recorded within this, until all has ended. */
const STILL_MS = 40_000

function complain(what: string): never {
  console.error(`COMPLAINT ${what}`)
  process.exit(1)
}

const stretch: Stretch = JSON.parse(process.argv[2]!)
const { home, calm, outside } = stretch
const random = randomFrom(stretch.seed)
const over = new AbortController()
const wild: Wilderness = { stuck: [], over: over.signal, calm }
// What was written a day ahead is due at the end.
let offset = calm ? 2 * DAY_MS : 0
const now = () => Date.now() + offset

/** Says what took too long, and what is seen then. */
async function within<T>(what: string, work: Promise<T>, seen: () => unknown = () => ''): Promise<T> {
  const timer = setTimeout(
    () => complain(`${what} took longer than ${PATIENCE_MS} ms ${JSON.stringify(seen(), null, 1)}`),
    PATIENCE_MS,
  )
  try {
    return await work
  } finally {
    clearTimeout(timer)
  }
}

const disk = new StormDisk(home)
// Before the start as well, which waits without space.
disk.free()
const agents = { wild: wildAgents(wild), quiet: quietAgent(stretch.calls, now) }
const t = await within('the start', testEngine({ home, agents, slots: SLOTS, settle: 50, now }))
const { engine } = t
const db = openHome(home)
console.log('ready')

/** A refusal has one of these codes, and is no error of the database. */
async function may(what: string, work: Promise<unknown>, ...codes: string[]): Promise<void> {
  await within(what, work).catch(error => {
    if (error instanceof CadreError && [...codes, 'unavailable', 'disk_full'].includes(error.code)) return
    complain(
      `${what}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)} ${JSON.stringify((error as CadreError).details ?? [])}`,
    )
  })
}

// Runs that the storm must not touch.

const quiet = (name: string, does: string, bytes: number, more: object = {}) => ({
  name,
  agent: 'quiet',
  sources: [{ name: `${name}.txt`, does, bytes }],
  ...more,
})
const teamFile = (phases: object[], more: object = {}) =>
  JSON.stringify({ name: '@local/quiet', version: '1.0.0', phases, ...more })

async function startWitnesses(): Promise<Witnesses> {
  const gate = await t.start(
    teamFile([
      quiet('before', 'write', 20),
      { name: 'ask', type: 'gate', depends_on: ['before'], review: { prompt: 'Go on?', reviewers: ['any'] } },
      quiet('after', 'write', 300_000, { depends_on: ['ask'] }),
    ]),
  )
  const retry = await t.start(teamFile([quiet('later', 'fail', 0, { retry: { attempts: 100, backoff: '5m' } })]))
  const stay = await t.start(teamFile([quiet('long', 'stay', 0)]))
  const done = await t.start({
    'team.yml': teamFile([
      quiet('small', 'write', 3_000),
      quiet('large', 'write', 400_000),
      { name: 'each', type: 'map', items: [1, 2], key: 'k{{ item }}', team: './one' },
    ]),
    'one/team.yml': teamFile([quiet('item', 'write', 5_000)], {
      outputs: [{ name: 'doc', type: 'file', value: '{{ phases.item.files[0].path }}' }],
    }),
  })
  const { state } = await within('a run that is well', engine.ended(done.run_id))
  if (state !== 'completed') complain(`a run that is well is ${state}`)
  const rests = () =>
    engine.record(gate.run_id).state === 'awaiting_input' &&
    engine.phases(retry.run_id).phases[0]!.reason === 'retry' &&
    engine.phases(stay.run_id).phases[0]!.state === 'running'
  await within('to reach the gate, the retry and the long phase', until(rests))
  return { gate: gate.run_id, retry: retry.run_id, stay: stay.run_id, done: done.run_id }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(5)
}

const witnesses = stretch.witnesses ?? (await startWitnesses())
if (!stretch.witnesses) console.log(JSON.stringify(witnesses))
const touched = new Set(Object.values(witnesses))
const others = () => rootsOf(db).filter(run => !touched.has(run.id))
const open = () => others().filter(run => run.completed_at === null)
/** What nobody cancels, for it has to end by itself. */
const spared = new Set<string>()
const ended = () => others().filter(run => run.completed_at !== null)

/** By run: when it was cancelled for the second time. */
const cancelled = new Map<string, number>()

function startOne() {
  const told = random.once(3)
  const team = wildTeam(random, 2, outside, told)
  return t.start(team, { n: random.below(4), ...(told && { token: stretch.secret }) })
}

async function decideOne(): Promise<void> {
  const reviews = pendingReviews(db).filter(review => review.run_id !== witnesses.gate)
  if (reviews.length === 0) return
  const { id, kind } = random.of(reviews)
  const decision = random.of(ANSWERS[kind])
  await may('to decide', engine.decide(id, { decision, by: 'chance' }), 'invalid_state', 'invalid_request', 'not_found')
}

/** What is refused changes nothing: it is asked of the runs that nobody touches. */
async function ask(): Promise<void> {
  const { gate, done } = witnesses
  const refused = 'invalid_state'
  await may('to cancel what has ended', wanted(engine.cancel(done)), refused)
  await may('to resume what waits', wanted(engine.resume(gate)), refused)
  await may('to resume what completed', wanted(engine.resume(done)), refused)
  await may('to delete what waits', wanted(deleteTree(engine, gate)), refused)
  const none = crypto.randomUUID()
  await may('to decide nothing', wanted(engine.decide(none, { decision: 'approve', by: 'chance' })), 'not_found')
}

const wanted = async (work: Promise<unknown>) => {
  await work
  complain('what had to be refused was not')
}

async function act(): Promise<void> {
  if (engine.load.stalled && random.once(50)) disk.free()
  const over = ended()
  if (outside.fill && disk.isCramped && over.length > 0) {
    return may('to delete', remove(random.of(over).id), 'invalid_state', 'not_found')
  }
  switch (random.below(14)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      if (open().length < BUSY) await may('to start', startOne())
      return
    case 5: {
      const runs = open().filter(run => !spared.has(run.id))
      if (runs.length === 0) return
      const { id } = random.of(runs)
      await may('to cancel', engine.cancel(id), 'invalid_state')
      if (!random.once(2)) return
      await may('to cancel again', engine.cancel(id), 'invalid_state')
      cancelled.set(id, performance.now())
      return
    }
    case 6:
    case 7: {
      if (over.length === 0) return
      const { id } = random.of(over)
      const options = random.of([{}, {}, { from: `p${random.below(3)}` }, { failed: true }])
      const inputs = random.once(2) ? { inputs: { token: stretch.secret } } : {}
      cancelled.delete(id)
      await may('to resume', engine.resume(id, { ...options, ...inputs }), 'invalid_state', 'invalid_request')
      return
    }
    case 8:
      if (over.length > 5) await may('to delete', remove(random.of(over).id), 'invalid_state', 'not_found')
      return
    case 9:
      offset = random.of([-DAY_MS, -1_000, 0, 1_000, DAY_MS])
      return
    case 10:
      if (outside.fill && random.once(6)) await disk.fill(random.below(FULL_MS))
      return
    case 11:
      return ask()
    default:
      await decideOne()
  }
}

/** A folder that its owner may not enter can keep a tree from being deleted; that is said, and no other tree's matter. */
function remove(id: string): Promise<void> {
  appendFileSync(stretch.going, `${id}\n`)
  return deleteTree(engine, id).catch(error => {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error
  })
}

/** What holds at any moment, as far as the face can tell. */
function look(): void {
  const { slots, stalled } = engine.load
  if (slots < 0 || slots > SLOTS) complain(`${slots} slots are in use, there are ${SLOTS}`)
  if (stalled) {
    // What cannot be recorded has some time for it once there is space.
    const soon = performance.now() - GRACE_MS + RECORD_MS
    for (const call of wild.stuck) call.due = Math.max(call.due, soon)
    for (const [id, at] of cancelled) cancelled.set(id, Math.max(at, soon))
    return
  }
  for (const [id, at] of cancelled) {
    const run = others().find(other => other.id === id)
    if (!run || run.completed_at !== null) cancelled.delete(id)
    else if (performance.now() - at > GRACE_MS) complain(`run ${id} goes on ${GRACE_MS} ms after its second cancel`)
  }
  for (const call of [...wild.stuck]) {
    if (performance.now() < call.due + GRACE_MS) continue
    wild.stuck.splice(wild.stuck.indexOf(call), 1)
    const phase = phaseOf(call.runId, call.phase)
    if (phase && phase.state === 'running' && phase.attempt === call.attempt) {
      complain(`phase ${call.phase} of run ${call.runId} runs ${GRACE_MS} ms after its time-out`)
    }
  }
}

/** A phase of a run that may have been deleted. */
const phaseOf = (runId: string, name: string) =>
  db.query('SELECT 1 FROM runs WHERE id = ?').get(runId)
    ? engine.phases(runId).phases.find(phase => phase.name === name)
    : undefined

/** Every run can be read, and every tree is the same from wherever it is asked for. */
function readAll(): void {
  for (const { id } of rootsOf(db)) {
    for (const run of treeOf(db, id)) {
      const record = engine.record(run.id)
      const { state, phases } = engine.phases(run.id)
      if (record.root_run_id !== id) complain(`run ${run.id} is below ${id} and says ${record.root_run_id}`)
      if (record.state !== state) complain(`run ${run.id} is ${record.state} and ${state}`)
      if (phases.length === 0) complain(`run ${run.id} has no phases`)
    }
  }
}

readAll()
const end = performance.now() + stretch.ms
if (calm) {
  const rests = () => open().every(run => run.state === 'awaiting_input')
  await settle(rests, () => `these neither end nor ask anybody: ${JSON.stringify([stillOpen(), engine.load], null, 1)}`)
  await dismiss()
} else {
  // One that is there from the beginning has the time to be found out.
  const never = { name: 'x.txt', manner: 'never', bytes: -1, clock: 100, token: null }
  const phase = { name: 'stuck', agent: 'wild', action: 'read', sources: [never], timeout: '100ms' }
  await may(
    'to start',
    t.start(teamFile([phase])).then(run => spared.add(run.run_id)),
  )
  while (performance.now() < end) {
    look()
    await act()
    await Bun.sleep(random.below(8))
  }
}
readAll()

/**
 * Waits for a condition as long as anything is recorded. Commands that began again may be ended while they fill the disk,
 * so somebody has to free it as often.
 */
async function settle(condition: () => boolean, otherwise: () => string): Promise<void> {
  const version = db.query<{ data_version: number }, []>('PRAGMA data_version')
  const latest = performance.now() + stretch.ms
  let seen = -1
  let still = 0
  for (disk.free(); !condition(); await Bun.sleep(10)) {
    const { data_version } = version.get()!
    if (data_version !== seen) still = performance.now() + STILL_MS
    seen = data_version
    if (performance.now() > Math.min(still, latest)) complain(otherwise())
    if (engine.load.stalled) disk.free()
    look()
  }
  disk.free()
}

/** At last the quiet ones: the gate opens, the others are cancelled. */
async function dismiss(): Promise<void> {
  const review = pendingReviews(db).find(one => one.run_id === witnesses.gate)
  if (!review) complain('the gate is not asked for any more')
  await engine.decide(review.id, { decision: 'approve', by: 'the test' })
  await engine.cancel(witnesses.retry)
  await engine.cancel(witnesses.stay)
  for (const [id, state] of [
    [witnesses.gate, 'completed'],
    [witnesses.retry, 'cancelled'],
    [witnesses.stay, 'cancelled'],
  ] as const) {
    const seen = () => [engine.load, engine.record(id), engine.phases(id), statfsSync(home)]
    const record = await within(`run ${id}`, engine.ended(id), seen)
    if (record.state !== state) complain(`run ${id} is ${record.state}, not ${state}: ${JSON.stringify(record.error)}`)
  }
}

function stillOpen() {
  const ids = new Set(open().flatMap(run => (run.state === 'awaiting_input' ? [] : [run.id])))
  return db
    .query<{ root_id: string }, []>(
      `SELECT root_id, runs.id, runs.state, team_key, ending, position, phases.state AS phase, phases.reason, phases.attempt, due_at
       FROM runs JOIN phases ON run_id = id WHERE runs.completed_at IS NULL AND phases.completed_at IS NULL`,
    )
    .all()
    .filter(row => ids.has(row.root_id))
}

db.close()
const stopped = t.close()
// Some do not come back even now: the process ends without them.
if (!random.once(3)) over.abort()
await within('the stop', stopped)
console.log(JSON.stringify({ calls: existsSync(stretch.calls) ? readFileSync(stretch.calls, 'utf8').length : 0 }))
process.exit(0)
