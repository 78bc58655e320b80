// The reference model: what a run must come to, from decisions.md 8 and 9 alone. It knows no clock, row or promise, and
// shares no code with the engine. A time-out, a failure and a person's answer are facts of the world, which gives the
// same answer for the same place in the same attempt of the top run.

import { keysOf, type ModelPhase } from './teams.ts'

/** What the world does at a place, such as `t7/p1/k0/p2`, in the attempt of the top run that is going on. */
export interface World {
  fails(path: string): boolean
  approves(path: string): boolean
  /** What a person says about a failure. */
  answers(path: string): 'fail' | 'skip' | 'complete'
  /** Whether a ticket is there, which is not written again. */
  isWritten(path: string): boolean
  /** The value that a step gets. */
  readonly value: number
}

export interface ModelRun {
  state: string
  n: number
  phases: PhaseEnd[]
}

export interface PhaseEnd {
  state: string
  reason: string | null
  value: number
  /** The keys of a map's items; null when they were never evaluated. */
  items: string[] | null
  /** What a map does with its sub-runs when it evaluates its items, where an attempt ended before it came to that. */
  due: 'whole' | 'renew' | null
  /** By key; a team phase has one with the key ``. Those whose items are gone are among them. */
  runs: Map<string, ModelRun>
}

/** What a resume asks for. */
export interface Request {
  from: number | null
  failed: boolean
}

/** The places at which an attempt calls the world. */
export type Called = Set<string>

type Way = 'rest' | 'failed' | 'whole'

export function startOf(team: ModelPhase[], path: string, n: number, world: World, called: Called): ModelRun {
  return attempt(team, path, n, null, 'whole', { from: null, failed: false }, world, called)
}

/** A resume of a top run; null where nothing is to be resumed. */
export function resumeOf(
  team: ModelPhase[],
  path: string,
  before: ModelRun,
  request: Request,
  world: World,
  called: Called,
): ModelRun | null {
  const isAsked = request.from !== null || (request.failed && passedOver(team, before))
  if (before.state === 'completed' && !isAsked) return null
  return attempt(team, path, before.n, before, request.failed ? 'failed' : 'rest', request, world, called)
}

// Section 8: what is repeated

/** By phase: `keep`, or the way in which it is repeated. */
export function repeatedOf(team: ModelPhase[], { phases }: ModelRun, { from, failed }: Request): ('keep' | Way)[] {
  const isAfter = (at: number, first: (at: number) => boolean): boolean =>
    team[at]!.depends.some(on => first(on) || isAfter(on, first))
  const isNamed = (at: number) => at === from
  const isPassedOver = (at: number) => failed && phaseHolds(team[at]!, phases[at]!)
  const stands = (at: number): boolean =>
    team.some(({ depends }, next) => depends.includes(at) && (hasResult(phases[next]!) || stands(next)))
  const isOutcome = (at: number) => (toleratedIn(team[at]!, phases[at]!) || phases[at]!.reason === 'when') && stands(at)
  const isAsked = (at: number) => isPassedOver(at) || !(hasResult(phases[at]!) || isOutcome(at))
  return team.map(({ kind }, at) => {
    if (isNamed(at) || isAfter(at, isNamed)) return 'whole'
    if (!isAsked(at) && !isAfter(at, isAsked)) return 'keep'
    if (isAsked(at) || !hasResult(phases[at]!) || kind === 'map') return failed ? 'failed' : 'rest'
    return 'whole'
  })
}

/** Of a map that is repeated, but not as a whole: whether something before it is repeated, too. */
function standsOnRepeated(team: ModelPhase[], made: readonly string[], at: number): boolean {
  return team[at]!.depends.some(on => made[on] !== 'keep' || standsOnRepeated(team, made, on))
}

/** It completed, or a person decided that nothing is to be done. */
const hasResult = ({ state, reason }: PhaseEnd): boolean =>
  state === 'completed' || (state === 'skipped' && reason === 'person')

const toleratedIn = ({ onFailure }: ModelPhase, { state }: PhaseEnd): boolean =>
  state === 'failed' && onFailure === 'continue'

/** Whether `--failed` finds something in a phase: a failure that was passed over. */
function phaseHolds(phase: ModelPhase, end: PhaseEnd): boolean {
  if (toleratedIn(phase, end)) return true
  return (
    end.state === 'completed' && currentRuns(end).some(run => run.state !== 'completed' || passedOver(phase.team, run))
  )
}

/** Whether a failure was passed over in a run, or anywhere below it. */
function passedOver(team: ModelPhase[], run: ModelRun): boolean {
  if (team.length === 0) return false
  const made = repeatedOf(team, run, { from: null, failed: true })
  return team.some((phase, at) => {
    const end = run.phases[at]!
    const isBelow = made[at] !== 'keep' && currentRuns(end).some(below => passedOver(phase.team, below))
    return isBelow || phaseHolds(phase, end)
  })
}

function currentRuns({ items, runs }: PhaseEnd): ModelRun[] {
  return (items ?? [...runs.keys()]).flatMap(key => runs.get(key) ?? [])
}

// Sections 8 and 9: what an attempt comes to

function attempt(
  team: ModelPhase[],
  path: string,
  n: number,
  before: ModelRun | null,
  way: Way,
  request: Request,
  world: World,
  called: Called,
): ModelRun {
  const made = before && way !== 'whole' ? repeatedOf(team, before, request) : team.map(() => 'whole' as const)
  const run: ModelRun = { state: 'completed', n, phases: [] }
  for (const [at, phase] of team.entries()) {
    const earlier = before?.phases[at] ?? NOTHING
    const repeated = made[at]!
    const isRenewed = repeated !== 'keep' && repeated !== 'whole' && standsOnRepeated(team, made, at)
    const end = repeated === 'keep' ? earlier : endOf(team, at, path, run, earlier, repeated, isRenewed, world, called)
    if (end.state === 'failed' && phase.onFailure !== 'continue') run.state = 'failed'
    run.phases.push(end)
  }
  return run
}

const NOTHING: PhaseEnd = { state: 'pending', reason: null, value: 0, items: null, due: null, runs: new Map() }

function endOf(
  team: ModelPhase[],
  at: number,
  above: string,
  run: ModelRun,
  before: PhaseEnd,
  way: Way,
  renewed: boolean,
  world: World,
  called: Called,
): PhaseEnd {
  const phase = team[at]!
  const path = `${above}/p${at}`
  // A map that is repeated as a whole, or behind something repeated, forgets its items; its sub-runs keep their keys.
  const items = way === 'whole' || renewed ? null : before.items
  const isWhole = way === 'whole' || (before.items === null && before.due === 'whole')
  const isMap = phase.kind === 'map'
  const due = !isMap || items !== null || before.runs.size === 0 ? null : isWhole ? 'whole' : 'renew'
  const rest: PhaseEnd = { ...before, value: 0, items, due }
  const skipped = (reason: string): PhaseEnd => ({ ...rest, state: 'skipped', reason })
  const blocks = phase.depends.some(on => {
    const { state, reason } = run.phases[on]!
    return (state === 'failed' && team[on]!.onFailure !== 'continue') || state === 'cancelled' || reason === 'upstream'
  })
  if (blocks && !phase.always) return skipped('upstream')
  const first = phase.depends[0] === undefined ? null : run.phases[phase.depends[0]]!
  if (phase.when !== 'none' && phase.when !== first?.state) return skipped('when')
  const end = workOf(phase, path, run, rest, due === 'whole' ? 'whole' : way, due === 'renew', world, called)
  if (end.state !== 'failed' || phase.onFailure !== 'escalate') return end
  const answer = world.answers(path)
  if (answer === 'fail') return { ...end, reason: 'person' }
  return answer === 'skip'
    ? { ...end, state: 'skipped', reason: 'person' }
    : { ...end, state: 'completed', reason: null }
}

function workOf(
  phase: ModelPhase,
  path: string,
  run: ModelRun,
  before: PhaseEnd,
  way: Way,
  renewed: boolean,
  world: World,
  called: Called,
): PhaseEnd {
  const completed: PhaseEnd = { ...before, state: 'completed', reason: null }
  const failed: PhaseEnd = { ...before, state: 'failed', reason: null }
  switch (phase.kind) {
    case 'gate':
      return world.approves(path) ? completed : { ...failed, reason: 'rejected' }
    case 'hang':
      return failed
    case 'slow':
      return { ...failed, runs: new Map([['', { state: 'cancelled', n: 0, phases: [] }]]) }
    case 'step':
    case 'ticket':
      if (phase.kind === 'ticket' && world.isWritten(path)) return completed
      called.add(path)
      return world.fails(path) ? failed : { ...completed, value: phase.kind === 'step' ? world.value : 0 }
  }
  const n = phase.takes === null ? 0 : run.phases[phase.takes]!.value
  const items = phase.kind === 'map' ? (before.items ?? keysOf(phase, n)) : null
  const runs = new Map(before.runs)
  let failures = 0
  for (const key of items ?? ['']) {
    const earlier = runs.get(key) ?? null
    const isKept = earlier?.state === 'completed' && way !== 'whole' && !(renewed && earlier.n !== n)
    const isFound = earlier !== null && way === 'failed' && passedOver(phase.team, earlier)
    if (isKept && !isFound) continue
    if (phase.stops && failures > 0) {
      // What a map that stopped does not begin again is cancelled, and what it never began does not exist.
      if (earlier) runs.set(key, { ...earlier, state: 'cancelled' })
      continue
    }
    const isSame = earlier !== null && earlier.n === n
    const below = isSame ? way : 'whole'
    const request = { from: null, failed: way === 'failed' }
    const place = phase.kind === 'map' ? `${path}/${key}` : path
    const made = attempt(phase.team, place, n, earlier, below, request, world, called)
    runs.set(key, made)
    if (made.state !== 'completed') failures++
  }
  const end = { ...before, items, due: null, runs }
  const isFailed = failures > 0 && (phase.kind === 'team' || phase.stops)
  return { ...end, state: isFailed ? 'failed' : 'completed', reason: null }
}
