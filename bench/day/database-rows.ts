// What happens to PostgreSQL: it falls silent, takes no writes, runs out of disk, or a standby takes over.

import { until } from '../../tests/support/bounded.ts'
import type { Mark, Row } from './row.ts'
import { seconds } from './table.ts'
import type { World } from './world.ts'

/** How long a fault stays that nothing ends by itself. */
export const FAULT_MS = 30_000

export async function inDatabase(location: string, ...statements: string[]): Promise<void> {
  await using sql = new Bun.SQL(location, { max: 1 })
  for (const statement of statements) await sql.unsafe(statement)
}

const silent: Row = {
  name: 'silent-database',
  async run({ front }, mark) {
    front.silence()
    mark.fault()
    await Bun.sleep(FAULT_MS)
    front.answer()
    mark.mended()
    return undefined
  },
}

const readOnly: Row = {
  name: 'read-only-database',
  async run({ database }, mark) {
    const set = (value: string) =>
      inDatabase(database, `ALTER SYSTEM SET default_transaction_read_only = ${value}`, 'SELECT pg_reload_conf()')
    await set('on')
    mark.fault()
    await Bun.sleep(FAULT_MS)
    await set('off')
    mark.mended()
    return undefined
  },
}

/** How long it takes until somebody, or a program, gives the standby the address. */
const DECIDED_MS = 10_000

/** The machine of the primary vanishes, and its address leads to the standby later. */
async function failOver({ pair, front }: World, mark: Mark): Promise<void> {
  front.silence()
  mark.fault()
  await Bun.sleep(DECIDED_MS)
  await pair!.promote()
  front.answer()
  mark.mended()
}

const failover: Row = {
  name: 'failover',
  options: () => ({ standby: true }),
  async run(world, mark) {
    // What is committed until the end of the primary has then reached the standby.
    const synchronous = `ALTER SYSTEM SET synchronous_standby_names = '*'`
    await inDatabase(world.database, synchronous, 'SELECT pg_reload_conf()')
    const isSynchronous = async () => {
      await using sql = new Bun.SQL(world.database, { max: 1 })
      return (await sql`SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`).length > 0
    }
    await until(isSynchronous, 'the standby is a synchronous one')
    await Bun.sleep(2_000)
    await failOver(world, mark)
    return undefined
  },
}

/** How many seconds the standby lacks. */
const LOST_MS = 5_000

const lossyFailover: Row = {
  name: 'failover-with-loss',
  losesCommits: true,
  options: () => ({ standby: true }),
  async run(world, mark) {
    await world.pair!.cut()
    await Bun.sleep(LOST_MS)
    await failOver(world, mark)
    const since = Date.now()
    const copy = async () =>
      (await world.call('daemons/reconcile', { realm_id: world.realm })).data?.older_copy ?? false
    const isOver = async () => (await copy())?.ended_at ?? false
    await until(isOver, 'the hubs trust their database', 90_000)
    return [`the hubs held what the standby had waiting for ${seconds(Date.now() - since)}`]
  },
}

export const DATABASE_ROWS: Row[] = [silent, readOnly, failover, lossyFailover]
