// Chains of a realm. What ends a run writes the firing (../chains/ends.ts).

import { and, desc, eq, inArray, like, or } from 'drizzle-orm'
import type { Tables } from '../../../db/hub/schema.ts'
import { CadreError } from '../../error.ts'
import { type ChainSpec, type EndedRun, nothingEnded, occasionOf } from '../../firing/chain-kind.ts'
import { forbiddenAfter, mustNotComeBack } from '../../firing/cycle.ts'
import { bareTeam } from '../../firing/trigger.ts'
import { enabledChains, endedRun, endWithId, starterOf } from '../chains/ends.ts'
import { runWithLargeValues } from '../reports/large-values.ts'
import type { RealmKind } from './realm-kind.ts'
import type { Look } from './trigger-table.ts'

export const chains: RealmKind<ChainSpec> = {
  async mayBeEnabled({ hub, tx, trigger: { id, name, spec, realm_id } }) {
    const others = (await enabledChains(hub, tx, realm_id)).filter(each => each.id !== id)
    mustNotComeBack(linkOf({ name, spec }), others.map(linkOf))
  },

  async newest(look) {
    const { hub, tx, trigger } = look
    const { after, on } = trigger.spec.own
    const { runs } = hub.store
    const isAfter = or(eq(runs.team, after), like(runs.team, `%/${after}`))
    const top = and(eq(runs.realm_id, trigger.realm_id), eq(runs.run_id, runs.root_run_id), inArray(runs.state, on))
    const [found] = await tx.select().from(runs).where(and(top, isAfter)).orderBy(desc(runs.run_id)).limit(1)
    if (!found) throw nothingEnded(trigger.spec.own)
    return { run: await wholeOf(look, found) }
  },

  /** Of a firing that was made again, only the run is known. What people have started has it among its variables. */
  async values(look, { variables, occasion, end_id }) {
    if (variables.run !== undefined) return {}
    const { hub, tx, trigger } = look
    if (end_id) return { run: await endWithId(hub.store, tx, end_id) }
    const { runs } = hub.store
    const [runId = ''] = occasion.split(/[/#]/)
    const those = and(eq(runs.run_id, runId), eq(runs.realm_id, trigger.realm_id))
    const [found] = await tx.select().from(runs).where(those)
    if (found) return { run: await wholeOf(look, found) }
    throw new CadreError('invalid_state', `run ${runId}, which it follows, is not kept`)
  },

  forbids: ({ hub, tx, trigger }, variables) =>
    forbiddenAfter(trigger, variables.run as EndedRun, runId => starterOf(hub, tx, runId)),

  recalled(by, at) {
    if (by.kind !== 'chain') return null
    const { run_id, attempt } = by
    const occasion = occasionOf({ again: attempt !== undefined }, run_id, attempt ?? 1)
    return { occasion, at, late_ms: null, variables: {} }
  },
}

/** The teams of a realm are packages, whose names say what a chain starts. */
const linkOf = ({ name, spec: { own, team } }: { name: string; spec: { own: ChainSpec; team: string } }) => ({
  ...{ name, after: own.after, starts: bareTeam(team) },
})

async function wholeOf({ hub, tx }: Look<ChainSpec>, row: Tables['runs']['$inferSelect']): Promise<EndedRun> {
  const run = await runWithLargeValues(hub.store, tx, row)
  return endedRun(run, run.started_by)
}
