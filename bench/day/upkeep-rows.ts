// What has to be done with an installation: deletion of old runs, an upgrade, a restart of everything.

import { mkdirSync, realpathSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../db/hub/open-store.ts'
import { until } from '../../tests/support/bounded.ts'
import { folder } from '../../tests/support/folder.ts'
import { TREE } from './program.ts'
import type { Row } from './row.ts'
import type { World } from './world.ts'

const OLD_RUNS = 100_000
const CHUNK = 1_000
const DAY_MS = 86_400_000
const DELETED_MS = 200_000

/** Inserts runs that ended before they are kept, each with a phase and a line. */
async function addOldRuns(database: string): Promise<void> {
  const store = await openStore(database)
  const { runs, phases, logs, realms } = store
  const [realm] = await store.db.select({ id: realms.id }).from(realms)
  const at = Date.now() - 40 * DAY_MS
  const common = { realm_id: realm!.id, call_path: ['t'], team: 't', inputs: {}, attempt: 0, created_at: at }
  const ended = { state: 'completed' as const, completed_at: at, call_depth: 0, parent_run_id: null, tree_key: '' }
  const phase = {
    name: 'a',
    type: 'agent',
    state: 'completed',
    attempt: 0,
    depends_on: [],
    text: '',
    files: [],
  } as const
  for (let first = 0; first < OLD_RUNS; first += CHUNK) {
    const ids = Array.from({ length: CHUNK }, () => Bun.randomUUIDv7('hex', at))
    await store.write(async tx => {
      await tx.insert(runs).values(ids.map(id => ({ ...common, ...ended, run_id: id, root_run_id: id })))
      await tx.insert(phases).values(ids.map(run_id => ({ run_id, index: 0, ...phase, depends_on: [], files: [] })))
      await tx.insert(logs).values(ids.map(run_id => ({ run_id, seq: 1, at, stream: 'stdout' as const, text: 'x' })))
    })
  }
  await store.close()
}

const deletion: Row = {
  name: 'delete-100000-runs',
  options: () => ({ prepare: addOldRuns }),
  async run(world, mark) {
    await using sql = new Bun.SQL(world.database, { max: 1 })
    const left = async () => {
      const [{ count }] = await sql`SELECT count(*)::int AS count FROM runs WHERE team = 't'`
      return count as number
    }
    const first = await left()
    mark.fault()
    // A hub believes a time once it has lived with it for an hour, and looks for old runs once an hour, or when it begins to.
    await sql`UPDATE lived_time SET believed = claimed, latest = claimed`
    await replaceHubs(world)
    const isDone = async () => {
      await Bun.sleep(1_000)
      return (await left()) === 0
    }
    await until(isDone, 'the old runs are deleted', DELETED_MS)
    mark.mended()
    return [`${first} of ${OLD_RUNS} runs were left when it was first looked at`]
  },
}

/** The sources of a commit, with the packages of this one. */
async function treeOf(commit: string): Promise<string> {
  const tree = join(folder(), 'tree')
  mkdirSync(tree)
  const script = `git -C '${TREE}' archive ${commit} | tar -x -C '${tree}'`
  if (!Bun.spawnSync(['bash', '-o', 'pipefail', '-c', script]).success) {
    throw new Error(`git has no commit ${commit} here; choose another one with --from`)
  }
  symlinkSync(realpathSync(join(TREE, 'node_modules')), join(tree, 'node_modules'))
  return tree
}

/** One after the other. */
async function replaceHubs(world: World): Promise<void> {
  for (const at of world.hubs.keys()) {
    await world.stopHub(at)
    await world.startHub(at)
    // Caddy looks once a second.
    await Bun.sleep(2_000)
  }
}

/** Hubs first. */
async function replaceAll(world: World): Promise<void> {
  await replaceHubs(world)
  for (const at of world.daemons.keys()) {
    await world.stopDaemon(at)
    await world.startDaemon(at)
  }
}

const upgrade: Row = {
  name: 'rolling-upgrade',
  options: async (_, { from }) => ({ tree: await treeOf(from) }),
  async run(world, mark) {
    mark.fault()
    world.tree = TREE
    await replaceAll(world)
    mark.mended()
    return undefined
  },
}

const ROUNDS = 3

const restart: Row = {
  name: 'rolling-restart',
  async run(world, mark) {
    mark.fault()
    for (let round = 0; round < ROUNDS; round++) await replaceAll(world)
    mark.mended()
    return [`${ROUNDS} rounds over two hubs and four daemons`]
  },
}

export const UPKEEP_ROWS: Row[] = [deletion, upgrade, restart]
