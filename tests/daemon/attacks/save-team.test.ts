// Attacks on teams/save and teams/files: names and links that lead elsewhere, what is no file, and what is too much.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { files, type RunningDaemon, spawnDaemon } from '../../support/daemon.ts'
import { folder } from '../../support/folder.ts'

const TEAM =
  'name: "@local/kept"\nversion: 1.0.0\nphases:\n  - { name: one, agent: exec, commands: [{ name: c, run: "true" }] }\n'
const ATTACK = 'written: by an attacker\n'
const sha256 = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('hex')

let daemon: RunningDaemon
let owner: { authorization: string }
let top: string
let path: string

beforeAll(async () => {
  daemon = await spawnDaemon({ home: folder() })
  owner = { authorization: `Bearer ${daemon.token}` }
  top = realpathSync(files({ 'outside/team.yml': TEAM, 'team/team.yml': TEAM, 'team/below/team.yml': TEAM }))
  path = join(top, 'team')
  await daemon.call('/v1/workspaces/add', { path })
})
afterAll(() => daemon.stop())

const save = (given: Record<string, string>, base: Record<string, string | null>, at = path) =>
  daemon.post('/v1/teams/save', { path: at, files: given, base_sha256: base }, owner)
const read = (at = path) => daemon.post('/v1/teams/files', { path: at }, owner)

/** Every path below `top`, links not followed. */
const below = () => [...new Bun.Glob('**').scanSync({ cwd: top, dot: true, onlyFiles: false })].sort()

const NAMES = [
  ...['../team.yml', '../outside/team.yml', 'team.yml/../x', 'team.yml/../team.yml', './team.yml', 'below/team.yml'],
  ...['..', '.', '', ' ', '/', 'team.yml/', '/etc/team.yml', '//team.yml', '~/team.yml', 'x/../../a.test.yml'],
  ...['Team.yml', 'TEAM.YML', 'team.yaml', 'team.yml ', 'team.yml.', 'team.yml::$DATA', 'a.test.yaml', 'A.TEST.YML'],
  ...['team.yml\0', 'team.yml\0.test.yml', '\0team.yml', 'team.yml\n', 'a\n.test.yml', '\u202e.test.yml'],
  ...['..\\team.yml', 'C:\\team.yml', '..%2fa.test.yml', '\uff0e\uff0e.test.yml', '..\u2215a.test.yml', 'téam.yml'],
  ...['.test.yml', '..test.yml', '.a.test.yml', '-a.test.yml', `${'x'.repeat(300)}.test.yml`, 'settings.yml', '.env'],
  ...['__proto__', 'constructor', 'toString'],
]

test(`${NAMES.length} names are no names of such files`, async () => {
  const before = below()
  for (const name of NAMES) {
    // A body as text, because an object literal would take __proto__ for its prototype.
    const body = `{"path":${JSON.stringify(path)},"files":{${JSON.stringify(name)}:"${'x: 1'}"},"base_sha256":{${JSON.stringify(name)}:null}}`
    const { status } = await daemon.post('/v1/teams/save', body, owner)
    expect([name, status]).toEqual([name, 400])
  }
  expect(below()).toEqual(before)
})

test('folders that lead elsewhere are refused', async () => {
  symlinkSync(join(top, 'outside'), join(path, 'linked'))
  const before = below()
  const base = { 'team.yml': sha256(TEAM) }
  for (const [at, expected] of [
    [join(path, 'linked'), 403],
    [`${path}/../outside`, 403],
    [`${path}/linked/../../outside`, 403],
    [join(top, 'outside'), 403],
    [top, 403],
    ['/', 403],
    ['team', 400],
    ['.', 400],
    [`${path}\0`, 400],
    [join(path, 'none'), 400],
    [join(path, 'team.yml'), 400],
    [join(path, 'x'.repeat(3_000)), 400],
    ['/dev/null', 400],
    [`${path}team`, 400],
  ] as const) {
    const [saved, found] = [await save({ 'team.yml': ATTACK }, base, at), await read(at)]
    expect([at, saved.status, found.status]).toEqual([at, expected, expected])
    expect(JSON.stringify(found.body)).not.toContain('@local/kept')
  }
  // A sibling whose path begins with that of the workspace is none of its folders.
  mkdirSync(`${path}-other`)
  expect((await save({ 'team.yml': ATTACK }, { 'team.yml': null }, `${path}-other`)).status).toBe(403)
  expect(readFileSync(join(top, 'outside/team.yml'), 'utf8')).toBe(TEAM)
  expect(below()).toEqual([...before, 'team-other'].sort())
})

test('a workspace that became a link is refused', async () => {
  const swapped = join(top, 'swapped')
  mkdirSync(swapped)
  await daemon.call('/v1/workspaces/add', { path: swapped })
  renameSync(swapped, `${swapped}-away`)
  symlinkSync(join(top, 'outside'), swapped)
  expect((await save({ 'team.yml': ATTACK }, { 'team.yml': sha256(TEAM) }, swapped)).status).toBe(403)
  expect(readFileSync(join(top, 'outside/team.yml'), 'utf8')).toBe(TEAM)
})

test('the files of the home are none', async () => {
  const { home } = daemon
  await daemon.call('/v1/workspaces/add', { path: home })
  const inHome = join(home, 'packages/@acme/x/1.0.0')
  mkdirSync(inHome, { recursive: true })
  writeFileSync(join(inHome, 'team.yml'), TEAM)
  for (const at of [home, inHome])
    expect([(await read(at)).status, (await save({ 'team.yml': ATTACK }, { 'team.yml': null }, at)).status]).toEqual([
      403, 403,
    ])
  expect(readFileSync(join(inHome, 'team.yml'), 'utf8')).toBe(TEAM)
})

test('what is no plain file is neither read nor replaced, and nothing waits for it', async () => {
  const odd = join(path, 'odd')
  mkdirSync(odd)
  mkdirSync(join(odd, 'folder.test.yml'))
  symlinkSync(join(top, 'outside/team.yml'), join(odd, 'team.yml'))
  symlinkSync('/nowhere', join(odd, 'broken.test.yml'))
  symlinkSync('/dev/zero', join(odd, 'zero.test.yml'))
  expect(Bun.spawnSync(['mkfifo', join(odd, 'pipe.test.yml')]).success).toBeTrue()
  const socket = Bun.listen({ unix: join(odd, 'socket.test.yml'), socket: { data() {} } })
  const names = ['broken.test.yml', 'folder.test.yml', 'pipe.test.yml', 'socket.test.yml', 'zero.test.yml', 'team.yml']
  if (Bun.spawnSync(['mknod', join(odd, 'device.test.yml'), 'c', '1', '5'], { stderr: 'ignore' }).success) {
    names.push('device.test.yml')
  }
  const before = below()
  for (const name of names) {
    const { status, body } = await save({ [name]: ATTACK }, { [name]: null }, odd)
    expect([name, status]).toEqual([name, 400])
    expect(body.error.details[0]).toEqual({
      path: `/files/${name}`,
      message: expect.stringContaining('must be a plain file'),
    })
  }
  const found = (await read(odd)).body.data
  expect(found.files).toEqual({})
  expect(found.unread.map((each: { path: string }) => each.path).sort()).toEqual([...names].sort())
  expect(below()).toEqual(before)
  socket.stop(true)
  expect(readFileSync(join(top, 'outside/team.yml'), 'utf8')).toBe(TEAM)
})

test('texts that are none, that are too long, or that nobody can read', async () => {
  const before = readdirSync(path)
  const base = { 'team.yml': sha256(TEAM) }
  const tried = [
    await save({ 'team.yml': `a: "${'x'.repeat(1_048_576)}"` }, base),
    await save({ 'team.yml': `a: "${'é'.repeat(600_000)}"` }, base),
    await save({ 'team.yml': 'a: \0' }, base),
    await daemon.post(
      '/v1/teams/save',
      `{"path":${JSON.stringify(path)},"files":{"team.yml":"\\ud800"},"base_sha256":{"team.yml":null}}`,
      owner,
    ),
    await save({}, {}),
    await save({ 'team.yml': ATTACK }, {}),
    await save({ 'team.yml': ATTACK }, { ...base, 'a.test.yml': null }),
    await save({ 'team.yml': ATTACK }, { 'team.yml': 'no hash' }),
    await save({ 'a.test.yml': ATTACK, 'A.test.yml': ATTACK }, { 'a.test.yml': null, 'A.test.yml': null }),
    await save(
      Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`f${at}.test.yml`, ATTACK])),
      Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`f${at}.test.yml`, null])),
    ),
  ]
  expect(tried.map(({ status }) => status)).toEqual(tried.map(() => 400))
  expect((await save({ 'team.yml': 'x'.repeat(9_000_000) }, base)).status).toBe(413)
  expect(readdirSync(path)).toEqual(before)
  expect(readFileSync(join(path, 'team.yml'), 'utf8')).toBe(TEAM)

  const large = join(path, 'large')
  mkdirSync(large)
  writeFileSync(join(large, 'team.yml'), 'x'.repeat(1_048_577))
  writeFileSync(join(large, 'a.test.yml'), Buffer.from([0xff, 0xfe]))
  const found = (await read(large)).body.data
  expect([found.files, found.unread.length]).toEqual([{}, 2])
  expect((await save({ 'team.yml': ATTACK }, { 'team.yml': null }, large)).status).toBe(400)
})

test('a second name of another file is replaced, and the other file stays', async () => {
  const linked = join(path, 'hard')
  mkdirSync(linked)
  linkSync(join(top, 'outside/team.yml'), join(linked, 'team.yml'))
  expect((await save({ 'team.yml': ATTACK }, { 'team.yml': sha256(TEAM) }, linked)).status).toBe(200)
  expect(readFileSync(join(top, 'outside/team.yml'), 'utf8')).toBe(TEAM)
})

const fixed = (file: string, flag: '+i' | '-i') => Bun.spawnSync(['chattr', flag, file], { stderr: 'ignore' }).success

test('when one of several files cannot be replaced, all stay as they were', async () => {
  const all = join(path, 'all')
  mkdirSync(all)
  const names = ['a.test.yml', 'b.test.yml', 'c.test.yml']
  for (const name of names) writeFileSync(join(all, name), `${name}: 1\n`)
  // As root on a file system with attributes; elsewhere there is no such file.
  if (!fixed(join(all, 'b.test.yml'), '+i')) return
  try {
    const { status, body } = await save(
      { ...Object.fromEntries(names.map(name => [name, ATTACK])), 'new.test.yml': ATTACK },
      { ...Object.fromEntries(names.map(name => [name, sha256(`${name}: 1\n`)])), 'new.test.yml': null },
      all,
    )
    expect([status, body.error.message]).toEqual([400, expect.stringContaining('b.test.yml')])
    expect(readdirSync(all).sort()).toEqual(names)
    for (const name of names) expect(readFileSync(join(all, name), 'utf8')).toBe(`${name}: 1\n`)
  } finally {
    fixed(join(all, 'b.test.yml'), '-i')
  }
})
