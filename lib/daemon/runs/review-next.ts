// What happens when somebody approves a review: the phases that then run, in its run and in those above it, and what they
// write to other systems.

import type { Catalogue } from '../../agent/catalogue.ts'
import type { ReviewRow, Store } from '../../run/engine.ts'
import type { Settings } from '../../settings/settings.ts'
import { agentRefs, type Bundle, type Team, teamsOf } from '../../team/team.ts'
import type { ReviewNext } from '../../wire/records/review-records.ts'
import { type Described, writesOfPhases } from './planned-writes.ts'

interface Home {
  readonly catalogue: Catalogue
  readonly settings: Settings
  readonly engine: {
    readonly store: Store
    bundle(id: string): Bundle
  }
}

/** More phases or writes than this are only counted. */
const MOST = 200

/** Loads the agents that say what they write: a daemon that was just started has loaded none. */
export async function leadsTo({ catalogue, settings, engine }: Home, review: ReviewRow): Promise<ReviewNext> {
  const run = engine.store.runs.get(review.run_id)!
  const bundle = engine.bundle(run.bundle_id)
  await catalogue.load(teamsOf(bundle).flatMap(([, team]) => agentRefs(team)))
  const { environment } = run
  const scope = environment !== null && settings.whyNoEnvironment(environment) ? null : settings.in(environment)
  return within(nextOf(engine.store, bundle, review, { catalogue, scope }))
}

function within({ phases, writes }: ReviewNext): ReviewNext {
  const [morePhases, moreWrites] = [phases.length - MOST, writes.length - MOST]
  return {
    phases: phases.slice(0, MOST),
    writes: writes.slice(0, MOST).map(write => ({ ...write, to: withoutQuery(write.to) })),
    ...(morePhases > 0 && { more_phases: morePhases }),
    ...(moreWrites > 0 && { more_writes: moreWrites }),
  }
}

/**
 * The query of an address is left out, because it may contain keys that no setting names. A template may hold a `?`. Each
 * part is looked at once, however many templates there are.
 */
const withoutQuery = (address: string): string =>
  address.replace(/\{{4}|\{\{.*?\}\}|\?.*/gs, part => (part.startsWith('?') ? '' : part))

function nextOf({ runs }: Store, bundle: Bundle, review: ReviewRow, described: Described): ReviewNext {
  let row = runs.get(review.run_id)!
  // Null for the start of the run.
  let after = bundle.team(row.team_key).phases[review.position]?.name ?? null
  const next: ReviewNext = { phases: [], writes: [] }
  for (;;) {
    const names = phasesAfter(bundle.team(row.team_key), after)
    // An escalation may repeat its phase.
    if (after !== null && review.kind === 'escalation' && row.id === review.run_id) names.unshift(after)
    next.phases.push(...names)
    next.writes.push(...writesOfPhases(described, bundle, row.team_key, names))
    if (row.parent_id === null || row.parent_phase === null) return next
    after = row.parent_phase
    row = runs.get(row.parent_id)!
  }
}

/** The phases that depend on a phase, at any distance, in the order of the file; all of them after the start. */
function phasesAfter({ phases }: Team, name: string | null): string[] {
  if (name === null) return phases.map(each => each.name)
  const after = new Set<number>()
  const add = (position: number) => {
    for (const each of phases[position]?.dependants ?? []) {
      if (after.has(each)) continue
      after.add(each)
      add(each)
    }
  }
  add(phases.findIndex(each => each.name === name))
  return phases.flatMap((each, position) => (after.has(position) ? [each.name] : []))
}
