// teams/files and teams/save: the files of a team on this machine are read and changed by the owner of the home.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const teamText = (version: string) =>
  `name: "@local/saved"\nversion: ${version}\nphases:\n  - { name: one, agent: exec, commands: [{ name: c, run: "true" }] }\n`
const ONE = teamText('1.0.0')
const TWO = teamText('2.0.0')
const sha256 = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('hex')

let daemon: RunningDaemon
let owner: { authorization: string }

beforeAll(async () => {
  daemon = await spawnDaemon({ home: folder() })
  owner = { authorization: `Bearer ${daemon.token}` }
})
afterAll(() => daemon.stop())

const save = (body: object) => daemon.post('/v1/teams/save', body, owner)
const read = (path: string) => daemon.call('/v1/teams/files', { path }, owner)

/** A registered folder with a team. */
async function workspace(content: Record<string, string> = { 'team.yml': ONE }): Promise<string> {
  const path = files(content)
  await daemon.call('/v1/workspaces/add', { path })
  return path
}

test('what was read is saved, whole and with its mode, its owner and an entry in the audit log', async () => {
  const path = await workspace({ 'team.yml': ONE, 'a.test.yml': 'phase: one\n', 'notes.yml': 'x: 1\n' })
  chmodSync(join(path, 'team.yml'), 0o640)
  if (process.getuid?.() === 0) chownSync(join(path, 'team.yml'), 12_345, 23_456)
  const before = statSync(join(path, 'team.yml'))
  const found = await read(path)
  expect(found).toEqual({
    path,
    files: { 'a.test.yml': 'phase: one\n', 'team.yml': ONE },
    sha256: { 'a.test.yml': sha256('phase: one\n'), 'team.yml': sha256(ONE) },
    unread: [],
  })
  const { status, body } = await save({
    path,
    files: { 'team.yml': TWO, 'new.test.yml': 'phase: two\n' },
    base_sha256: { 'team.yml': found.sha256['team.yml'], 'new.test.yml': null },
  })
  expect([status, body.data]).toEqual([
    200,
    { path, sha256: { 'team.yml': sha256(TWO), 'new.test.yml': sha256('phase: two\n') }, problems: [] },
  ])
  expect(readFileSync(join(path, 'team.yml'), 'utf8')).toBe(TWO)
  expect(readFileSync(join(path, 'new.test.yml'), 'utf8')).toBe('phase: two\n')
  const { mode, uid, gid } = statSync(join(path, 'team.yml'))
  expect([mode, uid, gid]).toEqual([before.mode, before.uid, before.gid])
  expect(readdirSync(path).sort()).toEqual(['a.test.yml', 'new.test.yml', 'notes.yml', 'team.yml'])
  const { audit } = await daemon.call('/v1/audit/list', { action: 'teams/save' }, owner)
  expect(audit[0].target).toBe(`${path}: team.yml, new.test.yml`)
  expect(audit[0].actor).toStartWith('local:')
})

test('without the local token nothing is read and nothing is saved', async () => {
  const path = await workspace()
  const body = { path, files: { 'team.yml': TWO }, base_sha256: { 'team.yml': sha256(ONE) } }
  expect((await daemon.post('/v1/teams/save', body)).status).toBe(401)
  expect((await daemon.post('/v1/teams/files', { path })).status).toBe(401)
  expect(readFileSync(join(path, 'team.yml'), 'utf8')).toBe(ONE)
})

test('a file that changed meanwhile is kept, with all others of the call, and the error says what to do', async () => {
  const path = await workspace({ 'team.yml': ONE, 'a.test.yml': 'phase: one\n' })
  const base_sha256 = { 'team.yml': sha256(ONE), 'a.test.yml': sha256('phase: one\n'), 'b.test.yml': null }
  const given = { 'team.yml': TWO, 'a.test.yml': 'phase: two\n', 'b.test.yml': 'phase: two\n' }
  writeFileSync(join(path, 'a.test.yml'), 'phase: of somebody else\n')
  writeFileSync(join(path, 'b.test.yml'), 'phase: of somebody else\n')
  const { status, body } = await save({ path, files: given, base_sha256 })
  expect([status, body.error.code]).toEqual([409, 'conflict'])
  expect(body.error.message).toContain('teams/files')
  expect(body.error.details.map((each: { path: string }) => each.path)).toEqual([
    '/files/a.test.yml',
    '/files/b.test.yml',
  ])
  expect((await read(path)).files).toEqual({
    'team.yml': ONE,
    'a.test.yml': 'phase: of somebody else\n',
    'b.test.yml': 'phase: of somebody else\n',
  })
  // One that was removed has changed, too.
  const gone = await save({ path, files: { 'c.test.yml': 'x: 1\n' }, base_sha256: { 'c.test.yml': sha256('x: 1\n') } })
  expect([gone.status, gone.body.error.details[0].message]).toEqual([409, 'is not there any more'])
})

test('of two who save at once, one is told that the file changed', async () => {
  const path = await workspace()
  const base_sha256 = { 'team.yml': sha256(ONE) }
  const both = await Promise.all(
    ['2.0.0', '3.0.0'].map(version => save({ path, files: { 'team.yml': teamText(version) }, base_sha256 })),
  )
  expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
  const won = both.findIndex(({ status }) => status === 200)
  expect(readFileSync(join(path, 'team.yml'), 'utf8')).toBe(teamText(['2.0.0', '3.0.0'][won]!))
  expect(readdirSync(path)).toEqual(['team.yml'])
})

test('a draft with mistakes is saved, and the reply has the places of its mistakes', async () => {
  const path = await workspace()
  const broken = 'name: "@local/saved"\nversion: 1.0.0\nphases: 3\n'
  const { status, body } = await save({
    path,
    files: { 'team.yml': broken, 'a.test.yml': 'x: [' },
    base_sha256: { 'team.yml': sha256(ONE), 'a.test.yml': null },
  })
  expect(status).toBe(200)
  expect(body.data.problems.map((each: { message: string }) => each.message.split(': ', 1)[0])).toEqual([
    'team.yml:3:9',
    'a.test.yml:1:5',
  ])
  expect(readFileSync(join(path, 'team.yml'), 'utf8')).toBe(broken)
})

test('the folders are those of workspaces, and those of teams that ran', async () => {
  const top = await workspace({ 'teams/deep/team.yml': ONE })
  const deep = join(top, 'teams/deep')
  const base_sha256 = { 'team.yml': sha256(ONE) }
  expect((await save({ path: deep, files: { 'team.yml': TWO }, base_sha256 })).status).toBe(200)

  const other = files({ 'team.yml': ONE })
  const refused = await save({ path: other, files: { 'team.yml': TWO }, base_sha256 })
  expect([refused.status, refused.body.error.message]).toEqual([403, expect.stringContaining('workspaces add')])
  expect((await daemon.post('/v1/teams/files', { path: other }, owner)).status).toBe(403)
  const { run_id } = await daemon.call('/v1/runs/start', { path: other, workspace: top })
  await daemon.ended(run_id)
  expect((await save({ path: other, files: { 'team.yml': TWO }, base_sha256 })).status).toBe(200)
  // Only that folder, and none below or above it.
  mkdirSync(join(other, 'below'))
  const below = { path: join(other, 'below'), files: { 'team.yml': TWO }, base_sha256: { 'team.yml': null } }
  expect((await save(below)).status).toBe(403)
  expect((await save({ ...below, path: join(other, '..') })).status).toBe(403)
})

test('a draft is checked and planned before it is saved, with what stands on the disk beside it', async () => {
  const path = await workspace({
    'team.yml': ONE,
    'below/team.yml': teamText('1.0.0').replace('@local/saved', '@local/below'),
  })
  const calling = `${ONE}  - { name: two, type: team, team: ./below }\n`
  const draft = { path, files: { 'team.yml': calling } }
  expect(await daemon.call('/v1/teams/validate', draft)).toMatchObject({ valid: true, phases: ['one', 'two'] })
  const { team } = await daemon.call('/v1/teams/plan', draft)
  expect(team.phases.map((each: { name: string }) => each.name)).toEqual(['one', 'two'])
  const broken = { path, files: { 'team.yml': ONE.replace('agent: exec', 'agent: nothing') } }
  for (const asked of ['validate', 'plan']) {
    const { status, body } = await daemon.post(`/v1/teams/${asked}`, broken)
    expect([status, body.error.details[0].message]).toEqual([400, expect.stringContaining('team.yml:4:25: ')])
  }
  // The disk has the text from before, and a file without a draft is the one of the disk.
  expect(readFileSync(join(path, 'team.yml'), 'utf8')).toBe(ONE)
  expect((await daemon.call('/v1/teams/validate', { path })).phases).toEqual(['one'])
  for (const wrong of [
    { path: join(path, 'team.yml'), files: broken.files },
    { path: join(path, 'none'), files: broken.files },
    { path: 'relative', files: broken.files },
    { team: '@acme/x', files: broken.files },
  ]) {
    expect([wrong, (await daemon.post('/v1/teams/validate', wrong)).status]).toEqual([wrong, 400])
  }
})
