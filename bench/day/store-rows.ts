// What happens to the bucket, and to disks: of the database, of the folder in which hubs keep files, and of a daemon.

import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type SmallDisk, smallDisk } from '../../tests/support/disk.ts'
import { FAULT_MS, inDatabase } from './database-rows.ts'
import type { Row } from './row.ts'
import type { World } from './world.ts'

/** A file that cannot be sent is told of after a while. */
const LONG_FAULT_MS = 75_000
const SLOW_MS = 5_000

/** Whether no daemon has files that the store lacks. */
async function isSent(world: World): Promise<boolean> {
  const waiting = await Promise.all(world.daemons.map((_, at) => world.metric(at, 'cadre_outbox_files')))
  return waiting.every(count => count === 0)
}

const bucket = (name: string, before: () => Promise<null>): Row => ({
  name,
  isWell: isSent,
  async run({ bucket }, mark) {
    bucket.before = before
    mark.fault()
    await Bun.sleep(LONG_FAULT_MS)
    bucket.before = () => null
    mark.mended()
    return undefined
  },
})

const slowBucket = bucket('slow-bucket', async () => {
  await Bun.sleep(SLOW_MS)
  return null
})

/** It takes connections, and answers nothing. */
const deadBucket = bucket('dead-bucket', () => new Promise(() => {}))

/** The disk of a row, which is made before its world. */
let disk: SmallDisk

function openDisk(stack: AsyncDisposableStack): string {
  const made = smallDisk('128m')
  if (made === null) throw new Error('a small disk can be mounted by root on Linux only')
  disk = made
  stack.defer(() => made[Symbol.dispose]())
  return made.path
}

const full = (name: string, row: Omit<Row, 'name' | 'run'>): Row => ({
  name,
  ...row,
  async run(_, mark) {
    disk.fill()
    mark.fault()
    await Bun.sleep(FAULT_MS)
    disk.free()
    mark.mended()
    return undefined
  },
})

const fullDaemon = full('full-disk-of-daemon', { options: stack => ({ daemonHome: openDisk(stack) }) })

const fullHub = full('full-disk-of-hub', {
  options(stack) {
    const path = openDisk(stack)
    const files = join(path, 'files')
    mkdirSync(files)
    return { hubHome: path, artifacts: Bun.pathToFileURL(files).href }
  },
  isWell: isSent,
})

const fullDatabase = full('full-disk-of-database', {
  options(stack) {
    const path = openDisk(stack)
    const place = join(path, 'tables')
    mkdirSync(place)
    chmodSync(path, 0o755)
    if (!Bun.spawnSync(['chown', 'postgres', place]).success) throw new Error(`${place} cannot be given to postgres`)
    return {
      async prepare(database) {
        const outside = new URL(database)
        outside.pathname = 'postgres'
        const name = new URL(database).pathname.slice(1)
        await inDatabase(
          outside.href,
          `CREATE TABLESPACE small LOCATION '${place}'`,
          `ALTER DATABASE ${name} SET TABLESPACE small`,
        )
      },
    }
  },
})

export const STORE_ROWS: Row[] = [slowBucket, deadBucket, fullDaemon, fullHub, fullDatabase]
