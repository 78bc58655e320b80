// What commands read of runs: from the process that holds the home, or from its database when none does.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Static } from 'typebox'
import { openForReading } from '../../db/open.ts'
import { CadreError } from '../error.ts'
import {
  type ListFilter,
  listRuns,
  readLines,
  rootOf,
  runDetail,
  runPhases,
  Store,
  treeEntries,
  why,
} from '../run/engine.ts'
import type { Field } from '../team/team.ts'
import { bundleFromJson } from '../team/team.ts'
import {
  GetLogs,
  GetPhases,
  GetRun,
  GetTree,
  GetWhy,
  ListReviews,
  ListRuns,
  ListWorkspaces,
  type WorkspaceRecord,
} from '../wire/daemon-calls.ts'
import type { Why } from '../wire/run-records.ts'
import { type Client, withHome } from './client.ts'
import { databaseFile } from './home.ts'
import { shown, shownPhases, shownWhy } from './interrupted.ts'
import { listReviewRecords } from './reviews.ts'
import { Workspaces } from './workspaces.ts'

export interface Reader {
  runs(query: ListFilter): Promise<Static<typeof ListRuns.data>>
  run(id: string): Promise<Static<typeof GetRun.data>>
  tree(id: string): Promise<Static<typeof GetTree.data>>
  phases(id: string): Promise<Static<typeof GetPhases.data>>
  logs(id: string, query: { phase?: string; afterSeq: number; limit: number }): Promise<Static<typeof GetLogs.data>>
  reviews(query: { state?: string; limit: number; offset: number }): Promise<Static<typeof ListReviews.data>>
  why(id: string): Promise<Why>
  workspaces(): Promise<WorkspaceRecord[]>
}

/** Reads by `work`, which may be called again: a process that holds the home may let go of it in between. */
export function read<T>(home: string, work: (reader: Reader) => Promise<T>): Promise<T> {
  return withHome(
    home,
    client => work(overHttp(client)),
    async () => {
      const store = openStore(home)
      try {
        return await work(fromDatabase(home, store))
      } finally {
        store.db.close()
      }
    },
  )
}

/** The inputs that the team of a run declares. Throws `not_found`. */
export function inputsOfRun(home: string, runId: string): readonly Field[] {
  const store = openStore(home)
  const row = store.runs.get(runId)
  if (!row) throw new CadreError('not_found', `no run ${runId}`)
  return bundleFromJson(JSON.parse(store.bundles.get(row.bundle_id)!)).team(row.team_key).inputs
}

function openStore(home: string): Store {
  const file = databaseFile(home)
  if (!existsSync(file)) throw new CadreError('not_found', `nothing has run in ${home} yet`)
  return new Store(openForReading(file))
}

function overHttp(client: Client): Reader {
  return {
    runs: query => client.call(ListRuns, query),
    run: run_id => client.call(GetRun, { run_id }),
    tree: run_id => client.call(GetTree, { run_id }),
    phases: run_id => client.envelope(GetPhases, 'run_phases', { run_id }),
    logs: (run_id, { phase, afterSeq, limit }) =>
      client.call(GetLogs, { run_id, after_seq: afterSeq, limit, ...(phase !== undefined && { phase }) }),
    reviews: query => client.call(ListReviews, query),
    why: run_id => client.call(GetWhy, { run_id }),
    workspaces: async () => (await client.envelope(ListWorkspaces, 'workspace_list', {})).workspaces,
  }
}

/** Nobody holds the home: what has not ended was interrupted. */
function fromDatabase(home: string, store: Store): Reader {
  const bundle = (id: string) => bundleFromJson(JSON.parse(store.bundles.get(id)!))
  return {
    async runs(query) {
      const { runs, total } = listRuns(store, query)
      return { runs: runs.map(shown), total }
    },
    run: async id => shown(runDetail(store, id)),
    async tree(id) {
      const root_run_id = rootOf(store.db, id)
      return { root_run_id, runs: [...treeEntries(store.db, root_run_id)].map(shown) }
    },
    phases: async id => shownPhases(runPhases(store, id, bundle)),
    logs: async (id, query) => readLines(join(home, 'runs', runDetail(store, id).run_id), query),
    why: async id => shownWhy(why(store, id, bundle), rootOf(store.db, id)),
    reviews: async query => listReviewRecords({ store, bundle }, query),
    workspaces: async () => new Workspaces(store.db).list(),
  }
}
