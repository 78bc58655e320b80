// What `/metrics` says of PostgreSQL that does not answer, or takes no writes: what the hub itself knows, and which of both
// it is, so that an alert can name the cause. Needs `TEST_POSTGRES_URL`.

import { expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { METRICS_TOKEN } from '../support/served-hub.ts'
import { DATABASES, startHub, stop } from '../support/served-hubs.ts'
import { silentProxy } from '../support/silent-proxy.ts'

const onPostgres = DATABASES.find(({ name }) => name === 'PostgreSQL')

test.skipIf(!onPostgres)(
  'a database that is away, silent or read-only has a metric, beside what the hub knows without it',
  async () => {
    await using database = await onPostgres!.open()
    const location = new URL(database.location)
    const name = location.pathname.slice(1)
    await using proxy = await silentProxy(location.hostname, Number(location.port || 5432))
    location.host = `127.0.0.1:${proxy.port}`
    const hub = await startHub(location.href, { CADRE_METRICS_TOKEN: METRICS_TOKEN })
    const look = async () => {
      const reply = await fetch(`${hub.url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } })
      const text = await reply.text()
      const value = (sample: string) => new RegExp(`^${sample} (\\S+)$`, 'm').exec(text)?.[1]
      return {
        status: reply.status,
        up: value('cadre_hub_database_up'),
        readOnly: value('cadre_hub_degraded\\{reason="database_read_only"\\}'),
        full: value('cadre_hub_degraded\\{reason="database_full"\\}'),
        memory: value('process_resident_memory_bytes') !== undefined,
        older: value('cadre_hub_older_copy'),
      }
    }
    const well = { status: 200, up: '1', readOnly: '0', full: '0', memory: true, older: '0' }
    const away = { ...well, up: '0', readOnly: undefined, full: undefined }
    await using admin = new Bun.SQL(database.location, { max: 1 })
    try {
      expect(await look()).toEqual(well)
      await proxy.refuse(true)
      expect(await look()).toEqual(away)
      await proxy.refuse(false)
      await until(async () => (await look()).up === '1', 'the database answers again')
      await admin.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
      proxy.silence()
      await until(async () => (await look()).readOnly === '1', 'the hub knows that it is read-only')
      expect(await look()).toEqual({ ...well, readOnly: '1' })
      await admin.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = off`)
      proxy.silence()
      await until(async () => (await look()).readOnly === '0', 'the hub knows that it is not')
    } finally {
      await stop([hub])
    }
  },
  90_000,
)
