// The audit log of a home: who did what on it, its hash chain, what becomes of the chain when somebody edits the log, and
// who may read it. Each test has a home of its own.

import { expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { auditLines } from '../../lib/audit/audit-export.ts'
import { verifyAudit } from '../../lib/audit/audit-verify.ts'
import { readAudit } from '../../lib/daemon/home/audit.ts'
import { forgetAges } from '../support/aged-home.ts'
import { until } from '../support/bounded.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { openHome } from '../support/home-rows.ts'

setDefaultTimeout(60_000)

const ME = `local:${Bun.spawnSync(['id', '-un']).stdout.toString().trim()}`
const SECRET = 'hunter2-hunter2'
const TEAM = `
name: "@local/asks"
version: 1.0.0
inputs:
  - { name: title, type: string }
  - { name: pin, type: string, secret: true }
phases:
  - { name: ask, type: gate, review: { prompt: "Go on?", reviewers: [any] } }
`

interface Entry {
  type?: string
  id: number
  actor: string
  action: string
  target: string | null
  seq: number
  hash: string
  cursor: number
}

const owner = (daemon: RunningDaemon) => ({ authorization: `Bearer ${daemon.token}` })

async function exported(daemon: RunningDaemon, body: object = {}): Promise<Entry[]> {
  const reply = await fetch(`${daemon.url}/v1/audit/export`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...owner(daemon) },
    body: JSON.stringify(body),
  })
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/x-ndjson'])
  return (await reply.text())
    .trim()
    .split('\n')
    .filter(text => text !== '')
    .map(text => JSON.parse(text))
}

const entries = (lines: readonly Entry[]) => lines.filter(({ type }) => type === undefined)

/** A daemon on whose home somebody has added `count` workspaces. */
async function busy(count: number, env: Record<string, string> = {}): Promise<RunningDaemon> {
  const daemon = await spawnDaemon({ env })
  for (let at = 0; at < count; at++) await daemon.call('/v1/workspaces/add', { path: folder(), name: `w${at}` })
  return daemon
}

/** The home of a daemon that was stopped, with `count` sealed entries. */
async function sealedHome(count: number): Promise<string> {
  const daemon = await busy(count)
  await daemon.stop()
  return daemon.home
}

const verify = (home: string, ...args: string[]) => command(['audit', 'verify', ...args], { home })

/** The same in this process, for many homes. */
async function verdict(home: string) {
  using audit = await readAudit(home)
  return await verifyAudit(auditLines(audit.log.source, {}), {})
}

function edit(home: string, ...statements: string[]): void {
  const db = openHome(home)
  for (const statement of statements) db.run(statement)
  db.close()
}

test('a home records who did what to runs, reviews, settings and workspaces, by names and never by values', async () => {
  const daemon = await spawnDaemon()
  const path = files({ 'team.yml': TEAM })
  const inputs = { title: 'a title that nobody repeats', pin: SECRET }
  const { run_id } = await daemon.call('/v1/runs/start', { path, inputs })
  const asked = async () => (await daemon.call('/v1/reviews/list', { run_id, state: 'pending' })).reviews[0]
  const { id } = await until(asked, 'the review', 30_000)
  const decision = { review_id: id, decision: 'reject', comment: 'a comment that nobody repeats' }
  await daemon.call('/v1/reviews/decide', decision, owner(daemon))
  await daemon.ended(run_id)
  await daemon.call('/v1/runs/resume', { run_id, inputs: { pin: SECRET } })
  await daemon.call('/v1/runs/cancel', { run_id })
  await daemon.ended(run_id)
  await daemon.call('/v1/runs/delete', { run_id })
  await daemon.call('/v1/settings/set', { key: 'agents.wiki.api_token', value: SECRET }, owner(daemon))
  await daemon.call('/v1/settings/set', { key: 'agents.wiki.api_token', value: null }, owner(daemon))
  const { path: shared, workspace_id } = await daemon.call('/v1/workspaces/add', { path: folder(), name: 'shared' })
  await daemon.call('/v1/workspaces/remove', { workspace_id })
  const { audit, total } = await daemon.call('/v1/audit/list', {}, owner(daemon))
  expect(audit.toReversed().map(({ actor, action, target }: Entry) => [actor, action, target])).toEqual([
    [ME, 'runs/start', `@local/asks@1.0.0 as ${run_id}, inputs title, pin`],
    [ME, 'reviews/decide', `${id}: reject, run ${run_id}`],
    [ME, 'runs/resume', run_id],
    [ME, 'runs/cancel', run_id],
    [ME, 'runs/delete', run_id],
    [ME, 'settings/set', 'agents.wiki.api_token'],
    [ME, 'settings/set', 'agents.wiki.api_token, removed'],
    [ME, 'workspaces/add', `shared: ${shared}`],
    [ME, 'workspaces/remove', `shared: ${shared}`],
  ])
  expect(total).toBe(9)
  const lines = JSON.stringify(await exported(daemon))
  for (const value of [SECRET, 'nobody repeats']) expect(lines).not.toContain(value)
  await daemon.stop()
})

test('a call that is refused, and a start that is repeated, leave no entry', async () => {
  const daemon = await spawnDaemon()
  const path = files({ 'team.yml': TEAM })
  const run_id = Bun.randomUUIDv7()
  for (let time = 0; time < 2; time++) {
    await daemon.call('/v1/runs/start', { path, run_id, inputs: { title: 'x', pin: SECRET } })
  }
  const absent = Bun.randomUUIDv7()
  for (const verb of ['cancel', 'resume', 'delete']) {
    expect((await daemon.post(`/v1/runs/${verb}`, { run_id: absent })).status).toBe(404)
  }
  expect((await daemon.post('/v1/runs/delete', { run_id })).status).toBe(409)
  const wrong = { key: 'nothing.reads.this', value: 'x' }
  expect((await daemon.post('/v1/settings/set', wrong, owner(daemon))).status).toBe(400)
  expect((await daemon.post('/v1/workspaces/add', { path: '/does/not/exist' })).status).toBe(400)
  expect(entries(await exported(daemon)).map(({ action }) => action)).toEqual(['runs/start'])
  await daemon.stop()
})

test('commands without a daemon are recorded: a run, a setting, a key', async () => {
  const home = folder()
  expect((await command(['settings', 'set', 'network.allow', '["127.0.0.1"]'], { home })).code).toBe(0)
  expect((await command(['keys', 'new'], { home })).code).toBe(0)
  const quick = files({
    'team.yml':
      'name: "@local/quick"\nversion: 1.0.0\nphases: [{ name: none, agent: exec, commands: [{ name: t, run: "true" }] }]\n',
  })
  const ran = await command(['run', quick], { home })
  expect([ran.code, ran.stderr]).toEqual([0, ran.stderr])
  const { stdout } = await command(['audit', 'list', '--json'], { home })
  expect(JSON.parse(stdout).audit).toMatchObject([
    { actor: ME, action: 'runs/start', seq: 3 },
    { actor: ME, action: 'keys/new', seq: 2 },
    { actor: ME, action: 'settings/set', target: 'network.allow', seq: 1 },
  ])
  expect(await verify(home)).toMatchObject({ code: 0, stdout: expect.stringMatching(/whole, entries 1 to 3; head/) })
})

test('an entry that was changed, removed, inserted or moved breaks the chain, and the first one is named', async () => {
  const insert = `INSERT INTO audit (at, actor, action, target, seq, hash)
    SELECT at, actor, action, target, 6, hash FROM audit WHERE seq = 5`
  const attacks: [what: string, entry: number, statements: string[]][] = [
    ['actor', 2, ["UPDATE audit SET actor = 'local:somebody' WHERE seq = 2"]],
    ['target', 4, ["UPDATE audit SET target = 'other' WHERE seq = 4"]],
    ['time', 1, ['UPDATE audit SET at = at + 1 WHERE seq = 1']],
    ['hash', 3, ["UPDATE audit SET hash = replace(hash, substr(hash, 1, 1), 'x') WHERE seq = 3"]],
    ['removed in the middle', 3, ['DELETE FROM audit WHERE seq = 3']],
    [
      'removed and counted again',
      3,
      ['DELETE FROM audit WHERE seq = 3', 'UPDATE audit SET seq = seq - 1 WHERE seq > 3'],
    ],
    ['removed at the beginning', 1, ['DELETE FROM audit WHERE seq < 3']],
    ['removed at the end', 5, ['DELETE FROM audit WHERE seq = 5']],
    ['all removed', 1, ['DELETE FROM audit']],
    ['inserted at the end', 6, [insert]],
    [
      'inserted in the middle',
      3,
      [
        'UPDATE audit SET seq = seq + 100 WHERE seq > 2',
        insert.replace('6,', '3,').replace('= 5', '= 105'),
        'UPDATE audit SET seq = seq - 99 WHERE seq > 100',
      ],
    ],
    [
      'moved',
      2,
      [
        'UPDATE audit SET seq = 20 WHERE seq = 2',
        'UPDATE audit SET seq = 2 WHERE seq = 3',
        'UPDATE audit SET seq = 3 WHERE seq = 20',
      ],
    ],
    ['taken out of the chain', 2, ['UPDATE audit SET seq = NULL, hash = NULL WHERE seq = 2']],
    [
      'an anchor in its place',
      1,
      ["UPDATE audit_chain SET anchor_seq = 2, anchor_hash = 'x'", 'DELETE FROM audit WHERE seq < 3'],
    ],
  ]
  const whole = readFileSync(join(await sealedHome(5), 'daemon.db'))
  for (const [what, entry, statements] of attacks) {
    const home = folder()
    writeFileSync(join(home, 'daemon.db'), whole)
    expect([what, (await verdict(home)).whole]).toEqual([what, true])
    edit(home, ...statements)
    const { whole: isWhole, report } = await verdict(home)
    expect([what, isWhole, report]).toEqual([what, false, [expect.stringMatching(/^home:\S+: BROKEN at entry \d+, /)]])
    if (what !== 'an anchor in its place')
      expect([what, report[0]]).toEqual([what, expect.stringContaining(`at entry ${entry},`)])
  }
})

test('a kill between an entry and its seal loses nothing, and the rest of the log says that it waits', async () => {
  const daemon = await busy(3)
  await daemon.kill('SIGKILL')
  const db = openHome(daemon.home)
  const rows = db.query<{ action: string; seq: number | null }, []>('SELECT action, seq FROM audit').all()
  db.close()
  expect(rows).toEqual(Array(3).fill({ action: 'workspaces/add', seq: null }))
  expect((await verify(daemon.home)).stdout).toContain('3 not sealed yet')
  const next = await spawnDaemon({ home: daemon.home })
  await next.call('/v1/workspaces/add', { path: folder() })
  expect(entries(await exported(next)).map(({ seq, id }) => [seq, id])).toEqual([1, 2, 3, 4].map(n => [n, n]))
  await next.stop()
  expect((await verify(daemon.home)).stdout).toMatch(/whole, entries 1 to 4; head/)
})

test('retention leaves an anchor from which the rest is verified, with hash, count and time', async () => {
  const home = await sealedHome(4)
  const days = (count: number) => Date.now() - count * 86_400_000
  // The log of somebody who worked long ago: the entries are written again, and sealed by the next daemon.
  edit(
    home,
    `UPDATE audit SET seq = NULL, hash = NULL`,
    `DELETE FROM audit_chain`,
    `UPDATE audit SET at = ${days(401)} WHERE id <= 2`,
    `UPDATE audit SET at = ${days(399)} WHERE id > 2`,
  )
  const first = await spawnDaemon({ home, env: { CADRE_KEEP_AUDIT_DAYS: '10000' } })
  const before = entries(await exported(first))
  await first.stop()
  forgetAges(home)
  const daemon = await spawnDaemon({ home })
  const rest = await until(
    async () => {
      const found = await exported(daemon)
      return entries(found).length === 2 && found
    },
    'the retention',
    30_000,
  )
  expect(rest[0]).toMatchObject({ type: 'begin', seq: 2, hash: before[1]!.hash, removed_until: expect.any(Number) })
  expect(entries(rest).map(({ hash }) => hash)).toEqual(before.slice(2).map(({ hash }) => hash))
  await daemon.stop()
  expect(await verify(home)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/entries 3 to 4 \(after entry 2, removed until 20/),
  })
  edit(home, 'DELETE FROM audit WHERE seq = 3')
  expect((await verify(home)).code).toBe(1)
})

test('an export is verified without its home, says where it is broken, and must have the hash that somebody kept', async () => {
  const home = await sealedHome(5)
  const { stdout: text } = await command(['audit', 'export'], { home })
  const lines = text.trim().split('\n')
  expect(lines).toHaveLength(7)
  const elsewhere = folder()
  const judged = async (some: readonly string[], ...args: string[]) => {
    const file = join(elsewhere, 'audit.jsonl')
    writeFileSync(file, `${some.join('\n')}\n`)
    const { code, stdout, stderr } = await verify(elsewhere, file, ...args)
    return [code, stdout + stderr] as const
  }
  const kept: string = JSON.parse(lines[3]!).hash
  expect(await judged(lines)).toEqual([0, expect.stringContaining('whole, entries 1 to 5')])
  expect((await judged(lines, '--from', kept))[0]).toBe(0)
  expect(await judged(lines, '--from', kept.replaceAll('a', 'b'))).toEqual([
    1,
    expect.stringContaining('no chain has the hash'),
  ])
  const swapped = [...lines.slice(0, 2), lines[3]!, lines[2]!, ...lines.slice(4)]
  for (const [some, fault] of [
    [lines.toSpliced(3, 1), 'BROKEN at entry 3, line 4'],
    [swapped, 'BROKEN at entry 2, line 3'],
    [lines.with(4, lines[4]!.replace('workspaces/add', 'workspaces/see')), 'BROKEN at entry 4, line 5'],
    [lines.slice(0, 4), 'BROKEN at entry 4, line 5: the export stops'],
    [lines.slice(0, 3), 'the export stops'],
    [lines.slice(3), 'BROKEN at entry 1'],
  ] as const) {
    expect(await judged(some)).toEqual([1, expect.stringContaining(fault)])
  }
  expect(await judged(['not json'])).toEqual([2, expect.stringContaining('audit export makes one')])
  expect(await judged(['[]'])).toEqual([2, expect.stringContaining('audit export makes one')])
})

test('parts of an export follow each other by cursor and by time, and verify together', async () => {
  const daemon = await busy(7)
  const whole = await exported(daemon)
  const parts: Entry[] = []
  for (let cursor = 0; ; ) {
    const part = await exported(daemon, { cursor, limit: 3 })
    const some = entries(part)
    if (some.length === 0) break
    parts.push(...part)
    cursor = some.at(-1)!.cursor
  }
  expect(entries(parts)).toEqual(entries(whole))
  const file = join(folder(), 'parts.jsonl')
  writeFileSync(file, parts.map(each => JSON.stringify(each)).join('\n'))
  expect(await verify(daemon.home, file)).toMatchObject({ code: 0 })
  const { audit } = await daemon.call('/v1/audit/list', { limit: 1, offset: 3 }, owner(daemon))
  const at: number = audit[0].at
  const [early, late] = [await exported(daemon, { until: at }), await exported(daemon, { since: at })]
  expect(entries([...early, ...late])).toEqual(entries(whole))
  expect(entries(late)[0]).toMatchObject({ at })
  await daemon.stop()
})

test('nobody without the local token reads the log, nobody from elsewhere does, and no call changes it', async () => {
  const daemon = await busy(1)
  for (const verb of ['list', 'export']) {
    const path = `/v1/audit/${verb}`
    expect((await daemon.post(path)).status).toBe(401)
    expect((await daemon.post(path, {}, { authorization: 'Bearer wrong' })).status).toBe(401)
    expect((await daemon.post(path, {}, { origin: 'https://example.com' })).status).toBe(403)
    expect((await daemon.post(path, { unknown: 1 }, owner(daemon))).status).toBe(400)
  }
  for (const verb of ['add', 'delete', 'update', 'seal', 'verify']) {
    expect((await daemon.post(`/v1/audit/${verb}`, {}, owner(daemon))).status).toBe(404)
  }
  await daemon.stop()
})

test('a list says when it stopped counting, and is filtered by action and time', async () => {
  const home = await sealedHome(1)
  edit(
    home,
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10001)
     INSERT INTO audit (at, actor, action, target) SELECT i, 'local:many', 'runs/start', 'x' FROM n`,
  )
  const daemon = await spawnDaemon({ home, env: { CADRE_KEEP_AUDIT_DAYS: '100000' } })
  const list = (body: object) => daemon.call('/v1/audit/list', body, owner(daemon))
  expect(await list({ limit: 1 })).toMatchObject({
    total: 10_000,
    total_more: true,
    audit: [{ action: 'workspaces/add' }],
  })
  const some = await list({ action: 'workspaces/add' })
  expect([some.total, 'total_more' in some, some.audit.length]).toEqual([1, false, 1])
  expect((await list({ since: 11, until: 21 })).total).toBe(10)
  await until(async () => (await exported(daemon, { limit: 1 })).length > 1, 'the first seals', 30_000)
  await daemon.stop()
  expect((await verify(home)).code).toBe(0)
})

test('a log without its last entries says that it cannot tell, and does not have the hash that somebody kept', async () => {
  const home = await sealedHome(4)
  const head = /head ([0-9a-f]{64})/.exec((await verify(home)).stdout)![1]!
  edit(
    home,
    'DELETE FROM audit WHERE seq > 2',
    'UPDATE audit_chain SET (seq, hash) = (SELECT seq, hash FROM audit WHERE seq = 2)',
  )
  const cut = await verify(home)
  expect(cut.code).toBe(0)
  expect(cut.stdout).toContain('whole, entries 1 to 2')
  expect(cut.stdout).toContain('not shown: entries that somebody with the database removed from the end')
  expect(await verify(home, '--from', head)).toMatchObject({ code: 1 })
})
