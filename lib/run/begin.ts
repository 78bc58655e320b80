// How a run begins: what is asked for, and the row that it becomes. Its place in the tree follows from the phase above.

import type { JsonObject } from '../json.ts'
import type { Bundle } from '../team/team.ts'
import type { LiveRun } from './live.ts'
import { parse, type RunRow, treeKey } from './records.ts'

export interface NewRun {
  id: string
  bundle: Bundle
  teamKey: string
  /** Checked and complete. */
  inputs: JsonObject
  /** The same as it may be stored: secrets masked. */
  recordedInputs: JsonObject
  runName: string | null
  workspace: string | null
  fromPath: boolean
  synced: boolean
}

/** The phase that a sub-run is started by. */
export interface Above {
  live: LiveRun
  position: number
}

/** `item` and `key` are those of a map's item; a team phase has the one item 0 without a key. */
export function newRow(run: NewRun, parent: Above | null, item: number, key: string | null, now: number): RunRow {
  const team = run.bundle.team(run.teamKey)
  const above = parent?.live.row
  return {
    id: run.id,
    root_id: above?.root_id ?? run.id,
    tree_key: above ? treeKey(above.tree_key, parent!.position, item) : '',
    parent_id: above?.id ?? null,
    parent_position: parent?.position ?? null,
    parent_phase: parent ? parent.live.phase(parent.position).name : null,
    item: parent ? item : null,
    run_name: parent ? key : run.runName,
    call_path: JSON.stringify([...(above ? parse<string[]>(above.call_path)! : []), team.name]),
    call_depth: above ? above.call_depth + 1 : 0,
    bundle_id: run.bundle.id,
    team_key: run.teamKey,
    team: team.name,
    version: team.version,
    state: 'running',
    reason: null,
    error: null,
    inputs: JSON.stringify(run.recordedInputs),
    outputs: null,
    workspace: run.workspace,
    from_path: run.fromPath ? 1 : 0,
    synced: run.synced ? 1 : 0,
    attempt: 1,
    ending: null,
    created_at: now,
    started_at: now,
    completed_at: null,
    deadline: team.timeout === undefined ? null : now + team.timeout,
    time_left: null,
    logged: 0,
  }
}
