// `teams/history`: the top runs of a team, each with what differs from the last completed run before it.

import type { JsonObject } from '../../json.ts'
import type { Bundle } from '../../team/team.ts'
import { within } from '../../wire/budget.ts'
import { counted } from '../../wire/page.ts'
import type { RunRecord } from '../../wire/records/run-records.ts'
import { type Compared, changesOf } from '../../wire/team-history.ts'
import { parse } from '../core/core.ts'
import { type Found, isLongRead, type Reads } from '../search/search.ts'
import type { RunHead, Store } from '../store/store.ts'
import { runHead } from './records.ts'

interface HistoryFilter {
  team: string
  upto?: string
  limit: number
  offset: number
}

interface HistoryPage {
  runs: (RunRecord & { changed: string[]; compared_to: string | null })[]
  total: number
  total_more?: true
}

/** Newest first: as many as fit into a reply. Without `reads` this process reads all by itself. */
export async function teamHistory(
  store: Store,
  asked: HistoryFilter,
  bundleOf: (id: string) => Bundle,
  reads: Reads | null,
): Promise<HistoryPage> {
  const filter = { ...asked, root_only: true }
  const isLong = isLongRead(filter) || store.runLists.isOfMany(filter)
  const { rows, found }: Found = isLong && reads ? await reads.list(filter) : store.runLists.list(filter)
  const changes = await changesOf(
    rows.map(comparedOf),
    last => {
      const before = { team: last.row.team, root_only: true, state: 'completed', upto: last.run_id }
      const { rows: newest } = store.runLists.list({ ...before, limit: 2, offset: 0 })
      const row = newest.find(({ id }) => id !== last.run_id)
      return row ? comparedOf(row) : null
    },
    {
      haveSameInputs: (run, before) => store.runLists.haveSameInputs(run.run_id, before.run_id),
      haveSameAgents: ({ row: one }, { row: other }) =>
        (one.bundle_id === other.bundle_id && one.team_key === other.team_key) ||
        agentsOf(bundleOf, one) === agentsOf(bundleOf, other),
    },
  )
  return { runs: within(rows.map((row, at) => ({ ...runHead(row), ...changes[at]! }))), ...counted(found) }
}

function comparedOf(row: RunHead): Compared & { row: RunHead } {
  const { team, state, version, environment, workspace } = row
  const known = { group: team, run_id: row.id, state, version, environment, workspace }
  return { ...known, text: `${row.bundle_id} ${row.team_key}`, inputs: parse<JsonObject>(row.inputs), row }
}

/** The agents of the phases of the team, which sub-teams add nothing to. */
function agentsOf(bundleOf: (id: string) => Bundle, { bundle_id, team_key }: RunHead): string {
  const { phases } = bundleOf(bundle_id).team(team_key)
  return [...new Set(phases.map(phase => (phase.type === 'standard' ? phase.agent : '')))].sort().join(' ')
}
