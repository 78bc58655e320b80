// Chains of a home. The end of a run writes the firing itself (db/daemon/migrations/0025_chains.sql).

import { CadreError } from '../../error.ts'
import { type ChainSpec, depthOf, type EndedRun } from '../../firing/chain-kind.ts'
import { cycleOf, type Link } from '../../firing/cycle.ts'
import type { Trigger } from '../../firing/trigger.ts'
import { startedBy } from '../../run/engine.ts'
import type { StartedBy } from '../../wire/records/started-by.ts'
import { loadTeam } from '../runs/start-run.ts'
import { type AtHome, type Home, whichTeam } from './at-home.ts'

/** The runs of a chain that a chain starts are at most so many. */
const MOST_DEPTH = 16

export const chain: AtHome<ChainSpec> = {
  newest({ daemon }, { spec: { own } }) {
    const run = newestEnd(daemon, own)
    if (run) return { run }
    throw new CadreError('invalid_state', `no run of ${own.after} has ${own.on.join(' or ')} yet`)
  },

  forbids({ daemon }, { id, name }, variables) {
    const run = variables.run as EndedRun
    if (depthOf(run) > MOST_DEPTH) {
      const detail = `${MOST_DEPTH} runs were started one by another before it`
      return { state: 'refused', reason: 'depth', detail }
    }
    if (!above(daemon, run.started_by).includes(id)) return null
    return { state: 'refused', reason: 'cycle', detail: `${name} has started a run above this one already` }
  },

  async mayBeEnabled(home, { id, name, spec }, starts) {
    const others = await enabledChains(home, id)
    const cycle = cycleOf({ name, after: spec.own.after, starts }, others)
    if (cycle) throw new CadreError('conflict', `these chains would start each other for ever: ${cycle.join(' → ')}`)
  },
}

/** The newest of the runs that it follows. */
function newestEnd({ engine }: Home['daemon'], { after, on }: ChainSpec): EndedRun | null {
  const { runs, runLists } = engine.store
  const newest = on.flatMap(state =>
    runLists.list({ state, team: after, root_only: true, limit: 1, offset: 0 }).rows.map(({ id }) => id),
  )
  const [id] = newest.sort().slice(-1)
  const row = id === undefined ? null : runs.get(id)
  if (!row) return null
  const { team, version, state, outputs, error } = row
  const values = {
    outputs: outputs === null ? null : JSON.parse(outputs),
    error: error === null ? null : JSON.parse(error),
  }
  return { run_id: row.id, team, version, state, ...values, started_by: startedBy(row)! }
}

/** The triggers of the chain of runs that ends with what this started, as far as those runs are kept. */
function above(daemon: Home['daemon'], first: StartedBy): string[] {
  const ids: string[] = []
  let by: StartedBy | null = first
  while (by?.kind === 'chain' && ids.length <= MOST_DEPTH) {
    ids.push(by.trigger)
    const row = daemon.engine.store.runs.get(by.run_id)
    by = row && startedBy(row)
  }
  return ids
}

/** All enabled chains but one, with the names of the teams that they start. One whose team cannot be read starts nothing. */
async function enabledChains({ daemon, tables }: Home, but: string): Promise<Link[]> {
  const links = await Promise.all(
    tables.triggers.enabledChains().map(async ({ id, name, spec }): Promise<Link[]> => {
      if (id === but) return []
      const { after } = (spec as Trigger<ChainSpec>['spec']).own
      const bundle = await loadTeam(daemon, whichTeam(spec.team)).catch(() => null)
      return bundle ? [{ name, after, starts: bundle.team(bundle.root).name }] : []
    }),
  )
  return links.flat()
}
