// "A backup that keeps seven" of docs/write-a-team.md: PostgreSQL's own pg_dump, and a store that checks signatures.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { fencesOf } from '../support/fences.ts'
import { folder } from '../support/folder.ts'
import { postgresDatabase, type TestDatabase } from '../vendors/databases.ts'
import { ACCESS, BUCKET, type ObjectVendor, objectVendor, refusal } from '../vendors/objectstore.ts'

const database = Bun.which('pg_dump') ? await postgresDatabase() : null

describe.if(database !== null)('a backup that keeps seven', () => {
  const { sql, table, close, settings } = database as TestDatabase
  const recipe = fencesOf('docs/write-a-team.md').find(({ words: [path] }) => path === 'backup/team.yml')!
  // The gate's database is large, and others write to it meanwhile.
  const only = `--schema=${table('x').split('.')[0]} --compress`
  const team = files({ 'backup/team.yml': recipe.text.replace('--compress', only) })
  let vendor: ObjectVendor
  let store: Bun.S3Client
  let daemon: RunningDaemon
  beforeAll(async () => {
    await sql(`CREATE TABLE ${table('orders')} AS SELECT 'an order to keep' AS words`)
    vendor = await objectVendor()
    const { access_key_id: accessKeyId, secret_access_key: secretAccessKey, region } = ACCESS
    store = new Bun.S3Client({ endpoint: vendor.endpoint, accessKeyId, secretAccessKey, region, bucket: BUCKET })
    const home = folder()
    const agents = { objectstore: { ...ACCESS, endpoint: vendor.endpoint } }
    writeFileSync(join(home, 'settings.yml'), JSON.stringify({ agents }), { mode: 0o600 })
    daemon = await spawnDaemon({ home })
  })
  afterAll(async () => {
    await daemon?.stop()
    await vendor?.[Symbol.asyncDispose]()
    await close()
  })

  async function backUp(more: object = {}) {
    const inputs = { database: settings.url, folder: `s3://${BUCKET}/shop/`, ...more }
    const { run_id } = await daemon.call('/v1/runs/start', { path: join(team, 'backup'), inputs })
    return daemon.ended(run_id)
  }
  async function keys(): Promise<string[]> {
    return ((await store.list()).contents ?? []).map(({ key }) => key).sort()
  }

  test('the first has nothing to delete, and can be unpacked', async () => {
    const { state, outputs } = await backUp()
    expect([state, outputs?.deleted]).toEqual(['completed', 0])
    const [key] = await keys()
    expect(key).toBe(`shop/${outputs?.backup}`)
    const text = new TextDecoder().decode(Bun.gunzipSync(await store.file(key!).bytes()))
    expect(text).toContain('an order to keep')
    expect(text).toContain('PostgreSQL database dump complete')
  }, 60_000)

  test('the oldest go, and nothing beside the folder', async () => {
    const old = Array.from({ length: 9 }, (_, day) => `shop/2020-01-0${day + 1}T030000Z.sql.gz`)
    for (const key of [...old, 'shop-of-another/2019.sql.gz']) await store.write(key, 'old')
    const before = (await keys()).filter(key => key.startsWith('shop/'))
    const { state, outputs } = await backUp({ folder: `s3://${BUCKET}/shop/` })
    // A backup of the same second as the one before it has its name.
    const all = new Set([...before, `shop/${outputs?.backup}`])
    expect([state, outputs?.deleted]).toEqual(['completed', all.size - 7])
    const left = await keys()
    expect(left).toEqual(['shop-of-another/2019.sql.gz', ...[...all].sort().slice(-7)])
    expect(left[7]).toBe(`shop/${outputs?.backup}`)
  }, 60_000)

  test('a dump or an upload that fails deletes nothing', async () => {
    const before = await keys()
    expect(await backUp({ keep: 1, database: 'postgres://127.0.0.1:1/none' })).toMatchObject({ state: 'failed' })
    vendor.fault = request => (request.method === 'PUT' ? refusal(403, 'AccessDenied') : null)
    expect(await backUp({ keep: 1 })).toMatchObject({ state: 'failed' })
    vendor.fault = () => null
    expect(await keys()).toEqual(before)
  }, 60_000)
})
