// The store of files takes only what a phase has recorded, only from daemons that somebody approved, so that nobody fills
// it.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { phaseChange, runChange } from '../support/sync.ts'

const place = folder()
const MIB = 1024 * 1024

let hub: TestHub
/** A plain member, and a daemon that nobody approved. */
let member: { token: string; daemon_id: string }
let run_id: string
let seq: number
let epoch: string
let people = 0

beforeAll(async () => {
  hub = await startTestHub({ env: { CADRE_ARTIFACTS: Bun.pathToFileURL(place).href } })
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: '@admin/t' })
})
afterAll(() => hub.stop())

beforeEach(async () => {
  const username = `mallory${++people}`
  const { token } = await hub.account(username)
  await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username, role: 'member' })
  const enrolling = await hub.realmToken(token, hub.realm)
  const { daemon_id } = await hub.ok(enrolling.token, 'daemons/register', { name: username })
  member = { token: enrolling.token, daemon_id }
  run_id = crypto.randomUUID()
  seq = 0
  epoch = crypto.randomUUID()
  await report(runChange(run_id))
})

const report = (change: object) =>
  hub.ok(member.token, 'runs/sync', {
    daemon_id: member.daemon_id,
    epoch,
    from_seq: ++seq,
    protocol: 1,
    changes: [{ ...change, seq }],
  })
const approve = () => hub.ok(hub.admin, 'daemons/approve', { daemon_id: member.daemon_id })

const fileOf = (content: string) => {
  const sha256 = new Bun.CryptoHasher('sha256').update(content).digest('hex')
  return { name: 'a.txt', path: `files/say/${sha256.slice(0, 8)}`, bytes: content.length, sha256 }
}
type File = ReturnType<typeof fileOf>
const offer = ({ sha256, bytes }: Pick<File, 'sha256' | 'bytes'>) =>
  hub.call(member.token, 'artifacts/offer', { daemon_id: member.daemon_id, run_id, sha256, bytes })
const put = async ({ sha256, bytes }: File, content: string) => {
  const query = new URLSearchParams({ daemon_id: member.daemon_id, run_id, sha256, bytes: String(bytes) })
  const headers = { authorization: `Bearer ${member.token}` }
  return (await fetch(`${hub.url}/v1/artifacts/put?${query}`, { method: 'PUT', headers, body: content })).status
}
const stored = () => readdirSync(place, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile()).length

test('a daemon that nobody approved stores nothing, whatever it has reported', async () => {
  const before = stored()
  for (let at = 0; at < 8; at++) {
    const content = `${at}`.repeat(MIB)
    await report(phaseChange(run_id, [fileOf(content)]))
    expect((await offer(fileOf(content))).status).toBe(403)
    expect(await put(fileOf(content), content)).toBe(403)
  }
  expect(stored()).toBe(before)
  const { keptFiles, db } = hub.store
  expect((await db.select().from(keptFiles)).filter(file => file.root_run_id === run_id)).toEqual([])
})

test('what it reported can be sent once somebody has approved it', async () => {
  const file = fileOf('soon')
  await report(phaseChange(run_id, [file]))
  expect((await offer(file)).status).toBe(403)
  await approve()
  expect((await offer(file)).status).toBe(200)
  expect(await put(file, 'soon')).toBe(200)
})

test('a content that no phase has recorded is not taken, nor one of another length, run or hash', async () => {
  await approve()
  const file = fileOf('recorded')
  const before = stored()
  expect((await offer(file)).status).toBe(409)
  expect(await put(file, 'recorded')).toBe(409)
  await report(phaseChange(run_id, [file]))
  expect((await offer({ ...file, bytes: file.bytes + 1 })).status).toBe(409)
  expect((await offer({ ...file, sha256: fileOf('another').sha256 })).status).toBe(409)
  const first = run_id
  run_id = crypto.randomUUID()
  await report(runChange(run_id))
  expect((await offer(file)).status).toBe(409)
  expect(stored()).toBe(before)
  run_id = first
  expect(await put(file, 'recorded')).toBe(200)
  expect(stored()).toBe(before + 1)
})

test('files that are reported one by one are taken, and those of an earlier attempt no more', async () => {
  await approve()
  const [early, late] = [fileOf('early'), fileOf('late')]
  const artifact = ({ name, path, bytes, sha256 }: File) => ({
    ...{ kind: 'artifact', run_id, attempt: 1 },
    artifact: { phase: 'say', name, path, bytes, sha256 },
  })
  await report(phaseChange(run_id, []))
  await report(artifact(early))
  expect((await offer(early)).status).toBe(200)
  await report(runChange(run_id, {}, 2))
  await report(phaseChange(run_id, [late], 2))
  expect((await offer(early)).status).toBe(409)
  expect((await offer(late)).status).toBe(200)
})

test('the files of a run are found by their paths, however many there are', async () => {
  const files = Array.from({ length: 3_000 }, (_, at) => ({ ...fileOf(`${at}`), path: `files/say/${at}.txt` }))
  await report(phaseChange(run_id, files))
  await report({ kind: 'phase', run_id, attempt: 1, phase: { ...malformed(), files: [1, { path: 'x' }, null] } })
  const { artifacts, total } = await hub.ok(hub.admin, 'runs/artifacts', { run_id })
  expect([artifacts.length, total]).toEqual([3_000, 3_000])
  const some = await hub.ok(hub.admin, 'runs/artifacts', { run_id, offset: 2_990, limit: 100 })
  expect(some.artifacts).toHaveLength(10)
  const { phases } = await hub.ok(hub.admin, 'runs/phases', { run_id })
  expect(phases[0].files).toHaveLength(3_000)
})

function malformed() {
  const { phase } = phaseChange(run_id) as { phase: object }
  return { ...phase, name: 'odd', index: 1 }
}
