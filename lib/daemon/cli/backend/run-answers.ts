// What commands read about runs: from the process that holds the home, or from its database when no process does.

import { existsSync } from 'node:fs'
import { openForReading } from '../../../../db/open.ts'
import { CadreError } from '../../../error.ts'
import { type RunId, readRunId, runFolder } from '../../../files/run-id.ts'
import {
  hasLines,
  keptFile,
  listRunsHere,
  readLines,
  rootOf,
  runDetail,
  runIdsAfter,
  runPhases,
  Store,
  startedBy,
  statsOfTeam,
  teamHistory,
  treeEntries,
  why,
} from '../../../run/engine.ts'
import type { Field } from '../../../team/team.ts'
import { bundleFromJson } from '../../../team/team.ts'
import { ListReviews } from '../../../wire/calls/reviews.ts'
import {
  GetLogs,
  GetPhases,
  GetRun,
  GetRunStats,
  GetTree,
  GetWhy,
  ListRuns,
  ResumeRun,
} from '../../../wire/calls/runs.ts'
import { GetTeamHistory } from '../../../wire/calls/teams.ts'
import { ListWorkspaces } from '../../../wire/calls/workspaces.ts'
import { refuseInPlace } from '../../../wire/in-place.ts'
import { page } from '../../../wire/page.ts'
import { sinceOrDefault } from '../../../wire/run-stats.ts'
import { withStarter } from '../../../wire/why/explain.ts'
import { withCommandsOfNow } from '../../../wire/why/next-commands.ts'
import { databaseFile } from '../../home/home.ts'
import { type Older, readRunDatabase } from '../../home/run-database.ts'
import { readArtifact } from '../../runs/artifact-file.ts'
import { planOfResume } from '../../runs/cancel-resume.ts'
import { shown, shownPhases, shownWhy, storedFilter } from '../../runs/interrupted.ts'
import { listReviewRecords } from '../../runs/reviews.ts'
import { Workspaces } from '../../runs/workspaces.ts'
import { type Callee, withHome } from './home-client.ts'
import { answer, answering } from './local-answers.ts'

/**
 * Reads with `work`, which may be called more than once, because a process that holds the home may release it in
 * between.
 */
export function askAboutRuns<T>(home: string, work: (callee: Callee) => Promise<T>, older?: Older): Promise<T> {
  return withHome(home, work, async () => {
    const store = await openStore(home, older)
    try {
      return await work(fromDatabase(home, store))
    } finally {
      store.db.close()
    }
  })
}

/** The content of a file of a run, whether its file is written already or not. Throws `not_found`. */
export function artifactIn(home: string, runId: string, path: string): Promise<AsyncGenerator<Uint8Array, void>> {
  return withHome(
    home,
    client => client.artifact(runId, path),
    async () => {
      const { db } = await openStore(home)
      try {
        const kept = keptFile(db, home, runId, path)
        return (await readArtifact(runFolder(home, readRunId(runId)), runId, path, kept)).chunks
      } finally {
        db.close()
      }
    },
  )
}

/** An id for a new run, greater than those of all runs in a home, for a call to the process that holds it. */
export function newRunId(home: string): RunId {
  const db = openForReading(databaseFile(home))
  try {
    return runIdsAfter(db).next()
  } finally {
    db.close()
  }
}

/** The inputs that the team of a run declares. Throws `not_found`. */
export async function inputsOfRun(home: string, runId: string): Promise<readonly Field[]> {
  const store = await openStore(home)
  const row = store.runs.get(runId)
  if (!row) throw new CadreError('not_found', `there is no run ${runId}`)
  return bundleFromJson(JSON.parse(store.bundles.get(row.bundle_id)!)).team(row.team_key).inputs
}

async function openStore(home: string, older?: Older): Promise<Store> {
  if (!existsSync(databaseFile(home))) throw new CadreError('not_found', `nothing has run in ${home} yet`)
  return new Store(await readRunDatabase(home, older))
}

/** Answers from the database. No process holds the home, so a run that has not ended was interrupted. */
function fromDatabase(home: string, store: Store): Callee {
  const bundle = (id: string) => bundleFromJson(JSON.parse(store.bundles.get(id)!))
  const linesOf = (runId: string, query: Parameters<typeof readLines>[1]) =>
    readLines(runFolder(home, readRunId(runDetail(store, runId).run_id)), query)
  return answering(
    answer(ListRuns, async body => {
      const { runs, ...counted } = listRunsHere(
        store,
        storedFilter({ ...body, ...page(body) }, store.runs.openRootIds()),
      )
      return { runs: runs.map(shown), ...counted }
    }),
    answer(GetRunStats, async ({ team, since }) => {
      refuseInPlace(team)
      const now = Date.now()
      return statsOfTeam(store.db, { team, since: sinceOrDefault(since, now), now })
    }),
    answer(GetTeamHistory, async ({ team, upto, ...asked }) => {
      refuseInPlace(team)
      const filter = { team, ...page(asked), ...(upto !== undefined && { upto }) }
      const { runs, ...counted } = await teamHistory(store, filter, bundle, null)
      return { runs: runs.map(shown), ...counted }
    }),
    answer(GetRun, async ({ run_id }) => shown(runDetail(store, run_id))),
    answer(GetTree, async ({ run_id }) => {
      const root_run_id = rootOf(store.db, run_id)
      return { root_run_id, runs: [...treeEntries(store.db, root_run_id)].map(shown) }
    }),
    answer(GetPhases, async ({ run_id, phase }) => shownPhases(runPhases(store, run_id, bundle, { name: phase }))),
    answer(GetLogs, async ({ run_id, after_seq: afterSeq = 0, limit = 100, phase, last }) => {
      const { lines, next } = await linesOf(run_id, {
        afterSeq,
        limit,
        last,
        ...(phase !== undefined && { phase }),
      })
      return { lines, next }
    }),
    answer(GetWhy, async ({ run_id }) => {
      const root = rootOf(store.db, run_id)
      const found = await withCommandsOfNow(why(store, run_id, bundle), store.runs.get(root)!.state, (id, phase) =>
        hasLines(runFolder(home, readRunId(id)), phase),
      )
      return shownWhy(withStarter(found, startedBy(store.runs.get(run_id)!)), root, store.copies.held().includes(root))
    }),
    answer(ResumeRun, async ({ run_id, from_phase: from = null, failed = false, outputs = false, plan, inputs }) => {
      if (!plan) throw new CadreError('internal', 'no process holds the home that could resume a run')
      const request = { from, failed, outputs, ...(inputs && { inputs }) }
      return planOfResume({ store, bundle }, run_id, request, id => store.runs.openRootIds().includes(id))
    }),
    answer(ListReviews, async ({ state, run_id: runId, begins, review_id: reviewId, ...body }) =>
      listReviewRecords(
        { store, bundle },
        {
          ...page(body),
          ...(state !== undefined && { state }),
          ...(runId !== undefined && { runId }),
          ...(begins !== undefined && { begins }),
          ...(reviewId !== undefined && { reviewId }),
        },
      ),
    ),
    answer(ListWorkspaces, async () => ({ workspaces: new Workspaces(store.db).list() })),
  )
}
