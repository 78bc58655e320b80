// What commands read of runs: from the daemon that serves the home, or from its database when none does.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../db/open.ts'
import { CadreError } from '../error.ts'
import type { ReviewRecord, RunRecord } from '../run/engine.ts'
import {
  type ListFilter,
  type LogLine,
  listRuns,
  type RunDetail,
  type RunPhases,
  readLines,
  rootOf,
  runDetail,
  runPhases,
  Store,
  type TreeEntry,
  treeEntries,
  type Why,
  why,
} from '../run/engine.ts'
import { bundleFromJson } from '../team/team.ts'
import { type Client, connect } from './client.ts'
import { databaseFile } from './home.ts'
import { listReviewRecords } from './reviews.ts'
import { type WorkspaceRecord, Workspaces } from './workspaces.ts'

export interface Reader {
  runs(query: ListFilter): Promise<{ runs: RunRecord[]; total: number }>
  run(id: string): Promise<RunDetail>
  tree(id: string): Promise<{ root_run_id: string; runs: TreeEntry[] }>
  phases(id: string): Promise<RunPhases>
  logs(
    id: string,
    query: { phase?: string; afterSeq: number; limit: number },
  ): Promise<{ lines: LogLine[]; next: number }>
  reviews(query: { state?: string; limit: number; offset: number }): Promise<{ reviews: ReviewRecord[]; total: number }>
  why(id: string): Promise<Why>
  workspaces(): Promise<WorkspaceRecord[]>
}

export function openReader(home: string): Reader {
  const client = connect(home)
  return client ? overHttp(client) : fromDatabase(home)
}

function overHttp(client: Client): Reader {
  return {
    runs: query => client.call('/v1/runs/list', query),
    run: run_id => client.call('/v1/runs/get', { run_id }),
    tree: run_id => client.call('/v1/runs/tree', { run_id }),
    phases: run_id => client.envelope('/v1/runs/phases', 'run_phases', { run_id }),
    logs: (run_id, { phase, afterSeq, limit }) =>
      client.call('/v1/runs/logs', { run_id, after_seq: afterSeq, limit, ...(phase !== undefined && { phase }) }),
    reviews: query => client.call('/v1/reviews/list', query),
    why: run_id => client.call('/v1/runs/why', { run_id }),
    workspaces: async () =>
      (await client.envelope<{ workspaces: WorkspaceRecord[] }>('/v1/workspaces/get', 'workspace_list')).workspaces,
  }
}

function fromDatabase(home: string): Reader {
  const file = databaseFile(home)
  if (!existsSync(file)) throw new CadreError('not_found', `nothing has run in ${home} yet`)
  const store = new Store(openDatabase(file, { readonly: true }))
  const bundle = (id: string) => bundleFromJson(JSON.parse(store.bundles.get(id)!))
  return {
    runs: async query => listRuns(store, query),
    run: async id => runDetail(store, id),
    tree: async id => {
      const root_run_id = rootOf(store.db, id)
      return { root_run_id, runs: [...treeEntries(store.db, root_run_id)] }
    },
    phases: async id => runPhases(store, id, bundle),
    logs: async (id, query) => readLines(join(home, 'runs', runDetail(store, id).run_id), query),
    why: async id => why(store, id, bundle),
    reviews: async query => listReviewRecords({ store, bundle }, query),
    workspaces: async () => new Workspaces(store.db).list(),
  }
}
