// The hub as a process: first start, the listening line, accounts by command, stopping, state that survives.

import { Database } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { smallDisk } from '../support/disk.ts'
import { folder } from '../support/folder.ts'
import { freshPostgres } from '../support/hub.ts'
import { CHEAP_PASSWORDS, environmentAt, HUB } from '../support/program.ts'
import { otlpReceiver } from '../vendors/otlp.ts'

const home = folder()

/** Passwords are hashed as those of users are. */
const DEAR = { BUN_OPTIONS: '' }

function hub(args: string[], env: Record<string, string> = {}, stdin = '') {
  return Bun.spawn([...HUB, ...args], {
    env: { ...environmentAt(home), ...CHEAP_PASSWORDS, CADRE_HOME: home, CADRE_LOG_FORMAT: 'json', ...env },
    stdin: new TextEncoder().encode(stdin),
    stdout: 'pipe',
    stderr: 'pipe',
  })
}

async function command(args: string[], stdin = '', env: Record<string, string> = {}) {
  const child = hub(args, env, stdin)
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { code: await child.exited, out, err }
}

async function serving(env: Record<string, string> = {}) {
  const child = hub(['serve', '--port', '0'], env)
  const reader = child.stdout.getReader()
  let line = ''
  while (!line.includes('\n')) {
    const { value, done } = await reader.read()
    if (done) throw new Error(await child.stderr.text())
    line += new TextDecoder().decode(value)
  }
  const url = /^hub listening on (http:\/\/127\.0\.0\.1:\d+)\n$/.exec(line)![1]!
  const call = async (path: string, body: object = {}, token?: string) => {
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
    const reply = await fetch(`${url}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: reply.status, ...((await reply.json()) as { data: Record<string, unknown> }) }
  }
  return { child, url, call }
}

test('what the log of a hub says before its start fails is exported', async () => {
  await using receiver = otlpReceiver()
  const at = { CADRE_HUB_DATABASE: join(folder(), 'hub.db') }
  const first = await serving({ ...at, CADRE_HUB_KEY: 'right' })
  first.child.kill('SIGTERM')
  await first.child.exited
  const { code, err } = await command(['serve', '--port', '0'], '', {
    ...at,
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
  })
  expect([code, err]).toEqual([2, expect.stringContaining('CADRE_HUB_KEY')])
  expect(receiver.lines.map(({ event }) => event)).toContainEqual(expect.stringContaining('CADRE_HUB_KEY is not set'))
})

test('a second hub on the same SQLite file is refused, and a killed one is no obstacle', async () => {
  // The first start makes the folder.
  const at = { CADRE_HUB_DATABASE: join(folder(), 'new', 'hub.db') }
  const first = await serving(at)
  const second = hub(['serve', '--port', '0'], at)
  expect([await second.exited, await second.stderr.text()]).toEqual([
    2,
    expect.stringContaining(`another hub serves ${at.CADRE_HUB_DATABASE}: stop it first`),
  ])
  first.child.kill('SIGKILL')
  await first.child.exited
  const third = await serving(at)
  third.child.kill()
  expect(await third.child.exited).toBe(0)
})

test('first start, restart, commands beside it', async () => {
  const first = await serving(DEAR)
  expect(((await (await fetch(`${first.url}/health`)).json()) as { data: object }).data).toMatchObject({ status: 'ok' })
  // A command changes what the running hub decides, at once.
  expect(await command(['user', 'add', 'bob', '--password-stdin'], 'bobs password\n', DEAR)).toMatchObject({
    code: 0,
    out: 'added bob\n',
  })
  const { data } = await first.call('session/create', { username: 'bob', password: 'bobs password' })
  const token = String(data.token)
  expect((await first.call('auth/whoami', {}, token)).status).toBe(200)
  expect((await command(['user', 'passwd', 'bob', '--password-stdin'], 'another one\n', DEAR)).code).toBe(0)
  expect((await first.call('auth/whoami', {}, token)).status).toBe(401)
  const again = await first.call('session/create', { username: 'bob', password: 'another one' })
  expect((await command(['user', 'suspend', 'bob'])).out).not.toContain('no site admin')
  expect((await first.call('auth/whoami', {}, String(again.data.token))).status).toBe(401)
  expect((await command(['user', 'list'])).out).toBe('1\tadmin\tadmin\tactive\n2\tbob\tuser\tsuspended\n')

  first.child.kill('SIGTERM')
  expect(await first.child.exited).toBe(0)
  const log = await first.child.stderr.text()
  const password = /account admin with password (\S+)/.exec(log)![1]!
  expect(statSync(join(home, 'hub.db')).mode & 0o077).toBe(0)
  // What other tests lower: 64 MiB and two passes for each guess, whoever set the password.
  using db = new Database(join(home, 'hub.db'), { readonly: true })
  const hashes = db.query<{ password_hash: string }, []>('SELECT password_hash FROM users').all()
  expect(hashes).toHaveLength(2)
  for (const { password_hash } of hashes) expect(password_hash).toStartWith('$argon2id$v=19$m=65536,t=2,p=1$')

  const second = await serving()
  expect((await second.call('session/create', { username: 'admin', password })).status).toBe(200)
  second.child.kill('SIGINT')
  expect(await second.child.exited).toBe(0)
  expect(await second.child.stderr.text()).not.toContain('password')
})

test('what was committed survives kill -9', async () => {
  const first = await serving({ CADRE_ADMIN_PASSWORD: 'x' })
  expect((await command(['user', 'passwd', 'admin', '--password-stdin'], 'known password')).code).toBe(0)
  const { data } = await first.call('session/create', { username: 'admin', password: 'known password' })
  const made = await first.call('orgs/create', { slug: 'kept', display_name: 'Kept' }, String(data.token))
  first.child.kill('SIGKILL')
  await first.child.exited
  const second = await serving()
  const { data: org } = await second.call('orgs/get_by_id', { org_id: made.data.id }, String(data.token))
  expect(org.slug).toBe('kept')
  second.child.kill('SIGTERM')
  await second.child.exited
})

interface Readiness {
  status: number
  told: string | undefined
}

async function readiness(url: string): Promise<Readiness> {
  const reply = await fetch(`${url}/ready`)
  const { error } = (await reply.json()) as { error?: { message: string } }
  return { status: reply.status, told: error?.message }
}

/** Asks until the answer has this status. */
async function until(url: string, status: number): Promise<Readiness> {
  for (const end = Date.now() + 15_000; ; await Bun.sleep(50)) {
    const found = await readiness(url)
    if (found.status === status || Date.now() > end) return found
  }
}

test('is ready while the database has the schema of the program, or a newer one', async () => {
  const file = join(folder(), 'hub.db')
  const { child, url } = await serving({ CADRE_HUB_DATABASE: file })
  expect(await readiness(url)).toEqual({ status: 200, told: undefined })
  using db = new Database(file)
  // The hub writes while it begins, and holds the file meanwhile.
  db.run('PRAGMA busy_timeout = 10000')
  const { user_version: version } = db.query<{ user_version: number }, []>('PRAGMA user_version').get()!
  db.run('PRAGMA user_version = 3')
  expect(await readiness(url)).toEqual({
    status: 503,
    told: `not ready: the database has schema version 3, but this program needs ${version}`,
  })
  expect((await fetch(`${url}/health`)).status).toBe(200)
  for (const good of [version + 1, version]) {
    db.run(`PRAGMA user_version = ${good}`)
    expect((await readiness(url)).status).toBe(200)
  }
  child.kill()
  expect(await child.exited).toBe(0)
})

const disk = smallDisk('24m')
afterAll(() => disk?.[Symbol.dispose]())
test.skipIf(disk === null)('is not ready while its disk is full, which calls tell as that of the hub', async () => {
  const { child, url, call } = await serving({ CADRE_HUB_DATABASE: join(disk!.path, 'hub.db') })
  const signIn = () => call('session/create', { username: 'admin', password: 'a guess' })
  expect((await signIn()).status).toBe(401)
  disk!.fill()
  // What the log of the database has room for is still written.
  let refused = await signIn()
  for (let more = 0; refused.status !== 503 && more < 50; more++) refused = await signIn()
  expect(refused).toMatchObject({
    status: 503,
    error: {
      code: 'unavailable',
      message: 'the disk of the hub takes no more writes: free some space there, then try again',
    },
  })
  const away = { status: 503, told: 'not ready: the disk of the database takes no more writes' }
  expect(await readiness(url)).toEqual(away)
  await Bun.sleep(1_500)
  expect(await readiness(url)).toEqual(away)
  expect((await fetch(`${url}/health`)).status).toBe(200)
  disk!.free()
  expect((await until(url, 200)).status).toBe(200)
  expect((await signIn()).status).toBe(401)
  expect(readdirSync(disk!.path).filter(name => name.endsWith('.trial'))).toEqual([])
  child.kill()
  expect(await child.exited).toBe(0)
})

test.skipIf(!process.env.TEST_POSTGRES_URL)(
  'is not ready while PostgreSQL lets nobody in, and ready when it does (skipped without TEST_POSTGRES_URL)',
  async () => {
    const server = process.env.TEST_POSTGRES_URL!
    await using database = await freshPostgres(server)
    const name = new URL(database.location).pathname.slice(1)
    const sql = new Bun.SQL(server, { max: 1 })
    const { child, url } = await serving({ CADRE_HUB_DATABASE: database.location })
    expect((await readiness(url)).status).toBe(200)
    await sql.unsafe(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
    await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${name}`
    const { status, told } = await until(url, 503)
    expect(status).toBe(503)
    expect(told).toMatch(/^not ready: the database (does not answer|has not answered for 2000 ms)$/)
    expect((await fetch(`${url}/health`)).status).toBe(200)
    await sql.unsafe(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`)
    expect((await until(url, 200)).status).toBe(200)
    child.kill()
    await child.exited
    await sql.close()
  },
  60_000,
)

test.skipIf(!process.env.TEST_POSTGRES_URL)(
  'on a PostgreSQL that takes no writes it answers reads, and work begins again by itself (skipped without TEST_POSTGRES_URL)',
  async () => {
    await using database = await freshPostgres(process.env.TEST_POSTGRES_URL!)
    const name = new URL(database.location).pathname.slice(1)
    await using sql = new Bun.SQL(process.env.TEST_POSTGRES_URL!, { max: 1 })
    const env = { CADRE_HUB_DATABASE: database.location, CADRE_ADMIN_PASSWORD: 'a long password' }
    const { child, url, call } = await serving(env)
    const signIn = { username: 'admin', password: 'a long password' }
    const token = String((await call('session/create', signIn)).data.token)
    const readOnly = async (on: boolean) => {
      await sql.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = ${on ? 'on' : 'off'}`)
      // A standby or a full server would have begun to refuse on open connections.
      await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${name}`
    }
    await readOnly(true)
    const statusOf = async (path: string) => (await fetch(`${url}${path}`)).status
    await until(url, 200)
    expect(await (await fetch(`${url}/ready`)).json()).toMatchObject({ data: { degraded: ['database_read_only'] } })
    expect([await statusOf('/ready?for=writes'), await statusOf('/')]).toEqual([503, 200])
    expect((await call('realms/list', {}, token)).status).toBe(200)
    const refused = await call('orgs/create', { slug: 'one', display_name: 'One' }, token)
    expect(refused).toMatchObject({
      status: 503,
      error: { code: 'unavailable', message: expect.stringContaining('read-only') },
    })
    await readOnly(false)
    await until(url, 200)
    expect(await statusOf('/ready?for=writes')).toBe(200)
    expect((await call('orgs/create', { slug: 'one', display_name: 'One' }, token)).status).toBe(200)
    child.kill()
    expect(await child.exited).toBe(0)
  },
  60_000,
)

test('a hub that was told to stop says so and still answers, for as long as CADRE_DRAIN_SECONDS says', async () => {
  const { child, url, call } = await serving({
    CADRE_HUB_DATABASE: join(folder(), 'hub.db'),
    CADRE_DRAIN_SECONDS: '600',
  })
  child.kill('SIGTERM')
  expect(await until(url, 503)).toEqual({ status: 503, told: 'not ready: this process is stopping' })
  expect((await call('auth/whoami')).status).toBe(401)
  expect(child.exitCode).toBeNull()
  // A second signal ends that time.
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
  expect(await child.stderr.text()).toContain('"seconds":600,"counts":300}')
})

test.each([
  [{ CADRE_METRICS_TOKEN: 'too short' }, 'CADRE_METRICS_TOKEN: expected at least 16 characters'],
  [{ CADRE_WEBHOOK_ALLOW: '10.0.0.0/8, http://here' }, 'CADRE_WEBHOOK_ALLOW: expected addresses, ranges or host names'],
  [{ CADRE_ARTIFACTS: 'ftp://here' }, 'CADRE_ARTIFACTS: expected s3://bucket/prefix or file:///folder, got ftp://here'],
  [{ CADRE_ARTIFACTS: 's3://reports/../x' }, 'CADRE_ARTIFACTS: expected s3://bucket/prefix, with letters'],
  [{ CADRE_ARTIFACTS: 's3://reports' }, 'AWS_ACCESS_KEY_ID: it must be set, because CADRE_ARTIFACTS is a bucket'],
  [{ CADRE_ARTIFACTS: 'file:///nowhere/at/all' }, 'CADRE_ARTIFACTS: there is no folder /nowhere/at/all; make it'],
  [{ CADRE_ARTIFACTS: 'file:///', CADRE_ARTIFACTS_MAX_MB: '1.5' }, 'CADRE_ARTIFACTS_MAX_MB: expected a whole number'],
  [{ CADRE_HUB_POOL: '0' }, 'CADRE_HUB_POOL: expected a whole number from 1 to 1000, got 0'],
  [{ CADRE_HUB_POOLER: 'session' }, 'CADRE_HUB_POOLER: expected transaction, got session'],
  [{ CADRE_METRICS_SERIES: '0' }, 'CADRE_METRICS_SERIES: expected a whole number from 1 to 100000, got 0'],
  [{ CADRE_HUB_BACKUP: 'x', CADRE_HUB_BACKUP_EVERY: '10s' }, 'CADRE_HUB_BACKUP_EVERY: expected a duration such as'],
  [{ CADRE_HUB_BACKUP: 'x', CADRE_HUB_BACKUP_KEEP: '0' }, 'CADRE_HUB_BACKUP_KEEP: expected a whole number from 1 to'],
  [{ CADRE_HUB_BACKUP: 'x', CADRE_HUB_DATABASE: 'postgres://h/d' }, "use PostgreSQL's own tools, such as pg_dump"],
  [{ CADRE_DRAIN_SECONDS: 'soon' }, 'CADRE_DRAIN_SECONDS: expected a whole number from 0 to 300, got soon'],
])('a variable that makes no sense stops the start: %j', async (env, told) => {
  const child = hub(['serve', '--port', '0'], { CADRE_HUB_DATABASE: join(folder(), 'hub.db'), ...env })
  expect(await child.exited).toBe(2)
  const text = await child.stderr.text()
  expect(text).toContain(told)
  expect(text).not.toContain('too short')
})

test.each([
  [['frob'], 2, "unknown command 'frob'"],
  [['usr'], 2, '(did you mean `user`?)'],
  [['help', 'frob'], 2, "unknown command 'frob'"],
  [['user', 'list', '--database', '/nowhere/hub.db'], 2, 'there is no database /nowhere/hub.db: check --database'],
  [['user', 'frob'], 2, 'unknown'],
  [['serve', '--port', 'many'], 2, 'whole number'],
  [['user', 'add', 'UPPER'], 2, 'UPPER is not a valid user name; it must match '],
  [['user', 'suspend', 'nobody'], 2, 'there is no user nobody'],
  [['--help'], 0, ''],
] as [string[], number, string][])('%j exits %p', async (args, code, text) => {
  const result = await command(args)
  expect(result.code).toBe(code)
  expect(result.err).toContain(text)
})

const PLACE = folder()
const [FILE, FOLDER] = [join(PLACE, 'notes.md'), join(PLACE, 'folder')]
mkdirSync(FOLDER)
test.each([
  ['postgress://hub:s3cret@db.example.com/hub', 2, 'got an address that begins with postgress:'],
  [FOLDER, 1, `the database ${FOLDER} cannot be opened: EISDIR`],
  ['/proc/none/hub.db', 1, 'the database /proc/none/hub.db cannot be opened: ENOENT'],
  [FILE, 1, `the database ${FILE} cannot be opened: file is not a database`],
  ['postgres://hub:s3cret@127.0.0.1:9/hub', 1, 'the database postgres://127.0.0.1:9/hub cannot be opened'],
])('a hub told to use %s says in one line why it cannot', async (location, code, why) => {
  await Bun.write(FILE, 'These are notes, and no database at all, as anybody can see who reads them.\n'.repeat(20))
  const { code: status, err } = await command(['serve', '--port', '0', '--database', location])
  expect([status, err.trimEnd().split('\n')]).toEqual([code, [expect.stringContaining(why)]])
  expect(err).not.toContain('s3cret')
})

test('an account that was added before the first start does not take the place of the first one', async () => {
  const database = join(folder(), 'hub.db')
  expect(await command(['user', 'add', 'eve', '--database', database])).toMatchObject({ code: 0 })
  const { child, call } = await serving({ CADRE_HUB_DATABASE: database, CADRE_ADMIN_PASSWORD: 'choose-one' })
  expect((await call('session/create', { username: 'admin', password: 'choose-one' })).status).toBe(200)
  child.kill()
  await child.exited
})
