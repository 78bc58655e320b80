// Chains of a home. The end of a run writes the firing itself (db/daemon/migrations/0029_run_ends.sql).

import { type ChainSpec, type EndedRun, nothingEnded } from '../../firing/chain-kind.ts'
import { forbiddenAfter, type Link, mustNotComeBack } from '../../firing/cycle.ts'
import type { Trigger } from '../../firing/trigger.ts'
import { startedBy } from '../../run/engine.ts'
import { loadTeam } from '../runs/start-run.ts'
import { type AtHome, type Home, whichTeam } from './at-home.ts'

export const chain: AtHome<ChainSpec> = {
  newest({ daemon }, { spec: { own } }) {
    const run = newestEnd(daemon, own)
    if (run) return { run }
    throw nothingEnded(own)
  },

  /** What people have started has the run among its variables. */
  recalled({ tables }, _, { end_id }) {
    return end_id ? { run: tables.firings.endedRun(end_id) } : {}
  },

  forbids({ daemon }, trigger, variables) {
    return forbiddenAfter(trigger, variables.run as EndedRun, async runId => {
      const row = daemon.engine.store.runs.get(runId)
      return row && startedBy(row)
    })
  },

  async mayBeEnabled(home, { id, name, spec }, starts) {
    mustNotComeBack({ name, after: spec.own.after, starts }, await enabledChains(home, id))
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
