// A count that shows lost commits, told to one of two hubs while the other one commits: those commits were not lost.

import { expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { openStore } from '../../db/hub/open-store.ts'
import type { Store } from '../../db/hub/store.ts'
import type { Hub } from '../../lib/hub/core/hub.ts'
import { createHub } from '../../lib/hub/serve.ts'
import { createLog } from '../../lib/log/log.ts'
import { folder } from '../support/folder.ts'
import { freshPostgres } from '../support/hub.ts'

type Daemon = Parameters<Hub['lineage']['compareCount']>[0]

const server = process.env.TEST_POSTGRES_URL
const log = createLog({ write: () => {} })

test.skipIf(!server)(
  'what another hub commits meanwhile is not taken as lost',
  async () => {
    await using database = await freshPostgres(server!)
    const own = await openStore(database.location)
    const other = createHub({ store: await openStore(database.location), log, home: folder() })
    let between = async () => {}
    // The other hub commits after this one has looked for the highest count, and before it records the copy.
    const store: Store = Object.defineProperty({ ...own }, 'storedCount', {
      value: async () => {
        const count = await own.storedCount()
        await between()
        return count
      },
    })
    const hub = createHub({ store, log, home: folder() })
    const close = (each: Hub) => each.close()
    try {
      for (const each of [hub, other]) await each.lineage.open()
      const [row] = await own.db.select().from(own.lineage)
      const { lineage, secret } = row!
      const count = 1_000_000_000
      const signature = createHmac('sha256', secret).update(`${lineage} ${count} gone`).digest('hex').slice(0, 32)
      const daemon = { id: crypto.randomUUID(), name: 'ada', realm_id: 'one', approved_at: 1 }
      let committed = Number.POSITIVE_INFINITY
      between = async () => {
        between = async () => {}
        await other.store.write(async () => {})
        committed = other.store.commits.known
      }
      await hub.lineage.compareCount(daemon as Daemon, { lineage, count, mac: `gone.${signature}` })
      const [copy, ...more] = await own.db.select().from(own.copies)
      expect([copy, more]).toEqual([expect.objectContaining({ kind: 'behind', realm_id: 'one' }), []])
      expect(copy!.count).toBeGreaterThanOrEqual(committed)
    } finally {
      for (const each of [hub, other]) await close(each)
    }
  },
  60_000,
)
