// What becomes of one occasion of a trigger: whether it starts a run, waits for another, or why it starts nothing. The
// firing is written in the transaction that starts the run, with the cursor of its trigger.

import { parseDuration } from '../../duration.ts'
import { isLasting, messageOf } from '../../error.ts'
import { failpoint } from '../../failpoint.ts'
import { isFilled } from '../../firing/backfill.ts'
import { Changed } from '../../firing/changes.ts'
import { changedSince } from '../../firing/declared.ts'
import { type Another, anotherName, holderOf } from '../../firing/family.ts'
import { type Halt, haltOf, isUnjudged, isWorthAWord, mayWait, mostWaiting, superseded } from '../../firing/halt.ts'
import { judge } from '../../firing/judge.ts'
import { kindOf } from '../../firing/kinds.ts'
import type { Firing, Trigger } from '../../firing/trigger.ts'
import { filesIn } from '../../firing/watch-kind.ts'
import type { JsonObject } from '../../json.ts'
import { startReviewers } from '../../run/engine.ts'
import { type Bundle, reviewOf } from '../../team/team.ts'
import type { Daemon } from '../runs/daemon.ts'
import { loadTeam, startBundle } from '../runs/start-run.ts'
import { type Home, whichTeam } from './at-home.ts'
import type { FiringTable } from './firing-table.ts'
import { atHome } from './kinds-at-home.ts'
import { noteFiring } from './problem.ts'
import type { Tables } from './tables.ts'
import type { TriggerTable } from './trigger-table.ts'

/** An occasion, as its firing has it before anything became of it. */
export type Occasion = Pick<Firing, 'occasion' | 'at' | 'late_ms' | 'manual' | 'variables' | 'end_id'> & {
  /** It is fired once more, as `<occasion>#<n>`. */
  another?: Another
  /** How often the delivery of a hook came. */
  deliveries?: number
  /** What expressions see beside the variables. Throws `invalid_state` when that is not there any more. */
  more?(): JsonObject
  /** It does not start when the occasion came: it waited, or is caught up. */
  isLater?: boolean
  /** Starts whatever else runs. */
  force?: boolean
}

interface Besides {
  also?(): void
  recorded?(settled: Firing): void
  known?: Firing
}

/**
 * Decides about an occasion and records it. `also` changes other rows in the same transaction,
 * before the firing is written, and `recorded` after. `known`: the firing that
 * waited, or was refused and is judged once more. Throws `Changed`, `conflict` for `another` of an occasion that has its
 * run, and what keeps anything from being recorded.
 */
export async function fire(
  daemon: Daemon,
  tables: Tables,
  trigger: Trigger,
  occasion: Occasion,
  { also = () => {}, recorded = () => {}, known }: Besides = {},
): Promise<Firing> {
  const { triggers, firings, now } = tables
  const waits = known?.state === 'waiting' ? known : undefined
  const firing: Firing = known ?? {
    ...{ id: Bun.randomUUIDv7(), trigger_id: trigger.id, revision: trigger.revision },
    ...{ occasion: occasion.occasion, at: occasion.at, until: null, seen_at: now(), started_at: null },
    ...{ state: 'waiting', reason: null, detail: null, run_id: null },
    count: Math.max(1, filesIn(occasion.variables).length),
    ...{ late_ms: occasion.late_ms, manual: occasion.manual, variables: occasion.variables },
    ...{ deliveries: occasion.deliveries ?? null, end_id: occasion.end_id ?? null },
  }
  const write = (judged: Firing): Firing => {
    mustBeUnchanged(triggers, trigger)
    also()
    const settled = record(firings, judged, known, occasion.another)
    recorded(settled)
    atHome(trigger).settled?.({ daemon, tables }, settled)
    noteFiring(daemon, triggers, trigger, settled, { now: now(), heard: occasion.manual !== null && !waits })
    if (settled.state === 'waiting') {
      const most = mostWaiting(trigger)
      const beyond = most === null ? [] : firings.beyond(trigger.id, most)
      for (const old of beyond) firings.settle(superseded(old), old.state)
    }
    return settled
  }
  const halted = async ({ state, reason, detail }: Halt) => {
    const settled = { ...firing, revision: trigger.revision, state, reason, detail: daemon.mask(detail) as string }
    return daemon.engine.commit(() => write(settled))
  }

  const mustNotBeHeld = () => {
    if (!occasion.force && haltNow(daemon, tables, trigger, waits)) throw new Changed('another run holds it')
  }

  // What nobody has judged may start nothing at all, and then holds no place of those that wait.
  const held = waits && !isUnjudged(waits) && haltNow(daemon, tables, trigger, waits)
  if (held) return isWorthAWord(held, waits) ? halted(held) : waits
  const prepared = await prepare({ daemon, tables }, trigger, occasion)
  if ('state' in prepared) return halted(prepared)
  const halt = occasion.force ? null : haltNow(daemon, tables, trigger, waits)
  if (halt) return halted(halt)
  const { bundle, inputs, variables } = prepared
  const ready = (await atHome(trigger).ready?.({ daemon, tables }, trigger, firing, variables)) ?? null
  if (ready && 'state' in ready) return halted(ready)
  if (ready?.begin) {
    const { begin } = ready
    let waiting: Firing = {
      ...firing,
      ...{ revision: trigger.revision, state: 'waiting', reason: null, detail: null, variables: begin.variables },
    }
    await daemon.engine.commit(() => {
      mustNotBeHeld()
      waiting = write(waiting)
      begin.write()
    })
    failpoint()
    const { more: _, ...again } = occasion
    return fire(daemon, tables, trigger, { ...again, variables: begin.variables }, { known: waiting })
  }
  const { workspace, environment = null, run_name, team } = trigger.spec
  const request = { inputs, workspace, environment, run_name, ...whichTeam(team) }
  const runId = ready?.runId ?? daemon.engine.store.runs.newId()
  let started: Firing = {
    ...firing,
    ...{ revision: trigger.revision, state: 'started', reason: null, detail: null, run_id: runId },
    ...{ started_at: now(), late_ms: occasion.late_ms },
  }
  const startedBy = kindOf(trigger).startedBy(trigger, { ...started, variables }, occasion.isLater ?? false)
  const origin = {
    ...{ local: true, actor: `trigger:${trigger.name}`, startedBy, runId },
    unattended: true,
    also: () => {
      mustNotBeHeld()
      started = write(started)
    },
  }
  await startBundle(daemon, bundle, request, origin)
  return started
}

/** Writes the row of a firing, whose occasion starts one run. Returns it with its name. */
function record(firings: FiringTable, judged: Firing, known: Firing | undefined, another: Another | undefined): Firing {
  const { trigger_id, occasion } = judged
  if (another && !known) {
    const settled = { ...judged, occasion: anotherName(occasion, firings.family(trigger_id, occasion), another) }
    firings.insert(settled)
    return settled
  }
  const holder = known?.state === 'refused' && holderOf(firings.family(trigger_id, occasion))
  if (holder) throw new Changed(`${holder.occasion} is ${holder.state}`)
  if (known) firings.settle(judged, known.state)
  else if (firings.of(trigger_id, occasion)) throw new Changed(`${occasion} has a firing`)
  else firings.insert(judged)
  return judged
}

/** The team and its inputs for an occasion, or why it starts nothing. */
async function prepare(
  home: Home,
  trigger: Trigger,
  { variables, more }: Occasion,
): Promise<{ bundle: Bundle; inputs: JsonObject; variables: JsonObject } | Halt> {
  const { daemon } = home
  const { spec } = trigger
  let bundle: Bundle
  try {
    bundle = await loadTeam(daemon, whichTeam(spec.team))
  } catch (error) {
    if (!isLasting(error)) throw error
    return { state: 'refused', reason: 'team', detail: messageOf(error) }
  }
  let all: JsonObject
  try {
    // A sender may write its secret into the body, as older Gitea does, and inputs are kept as they are.
    all = daemon.mask({ ...variables, ...more?.() })
  } catch (error) {
    if (!isLasting(error)) throw error
    return { state: 'refused', reason: 'internal', detail: messageOf(error) }
  }
  const changed = changedSince(trigger, bundle.team(bundle.root))
  if (changed) return changed
  const forbidden = await atHome(trigger).forbids?.(home, trigger, all)
  if (forbidden) return forbidden
  const judged = judge(trigger, all, bundle.team(bundle.root).inputs)
  if (!('inputs' in judged)) return judged
  // A sender may write its secret into the body, as older Gitea does.
  return { bundle, inputs: daemon.mask(judged.inputs), variables: all }
}

/** What keeps a firing from starting now. `known` waits already. */
function haltNow(
  daemon: Daemon,
  { firings, now }: Tables,
  { id, spec }: Trigger,
  known: Firing | undefined,
): Halt | null {
  const { at_most: atMost } = spec
  const overlap = isFilled(known) ? 'queue' : spec.overlap
  if (!mayWait({ overlap, at_most: atMost })) return null
  const [holder] = overlap === 'allow' ? [] : firings.openRuns(id)
  const [first = null] = firings.waiting(id, 1)
  const facts = {
    holder: holder ? heldBy(daemon, firings, holder.id) : null,
    first,
    waiting: atMost || first?.reason === 'limit' ? firings.countWaiting(id) : 0,
    started: atMost ? firings.startedWithin(id, now(), parseDuration(atMost.per)!) : 0,
  }
  return haltOf({ overlap, at_most: atMost }, facts, known)
}

/** Which run holds, and whom it waits for. */
function heldBy({ engine }: Daemon, firings: FiringTable, runId: string): string {
  const run = `run ${runId} has not ended`
  const asked = firings.askedBelow(runId)
  if (!asked) return run
  const row = engine.store.reviews.get(asked)!
  const asking = engine.store.runs.get(row.run_id)!
  const phase = engine.bundle(asking.bundle_id).team(asking.team_key).phases[row.position]
  const reviewers = phase ? (reviewOf(phase)?.reviewers ?? ['any']) : startReviewers(asking)
  return `${run}: review ${row.id} asks ${reviewers.join(', ')} since ${new Date(row.created_at).toISOString()}`
}

function mustBeUnchanged(triggers: TriggerTable, { id, revision, cursor }: Trigger): void {
  const now = triggers.get(id)
  if (!now || now.revision !== revision || now.cursor !== cursor) throw new Changed('the trigger has changed')
}
