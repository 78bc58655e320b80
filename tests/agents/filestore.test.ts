import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import filestore from '../../agents/filestore.ts'
import type { AgentContext } from '../../lib/agent/agent-context.ts'
import type { Effect } from '../../lib/agent/core/effect.ts'
import { refusal } from '../../lib/testing/fake-vendor.ts'
import { testAgent } from '../../lib/testing/testing.ts'
import { phaseFolder, type TestContext, testContext } from '../support/context.ts'
import { command, files, spawnDaemon } from '../support/daemon.ts'
import { failureOf } from '../support/failure.ts'
import { folder } from '../support/folder.ts'
import { outcomeOf } from '../support/outcome.ts'
import { truthful } from '../support/truthful.ts'
import { variantsOf } from '../support/variants.ts'
import { add, CANARIES, credentials, type FakeDrive, fakeDrive } from '../vendors/filestore.ts'

const { source, target } = truthful(filestore) as Required<typeof filestore>
const FILE = credentials('service_account')
const settings = (url: string) => ({ credentials_file: FILE, base_url: url })
const FOLDER = 'application/vnd.google-apps.folder'

let drive: FakeDrive
beforeEach(() => {
  drive = fakeDrive()
})
afterEach(() => drive[Symbol.dispose]())

const begin = (effect: Effect = 'read', extra: object = {}) =>
  testContext({
    agent: 'filestore',
    settings: { ...settings(drive.url), ...extra },
    network: { allow: [], literalOrigins: [] },
    effect,
  })
const read = (entry: object, at: TestContext = begin()) =>
  source.run({ name: 'out', ...entry }, at.context as AgentContext<never>)
const write = (content: string, entry: object = {}, at: TestContext = begin('once')) => {
  writeFileSync(join(at.workspace, 'report.md'), content)
  return target.run({ name: 'up', ref: 'folder-1', file: 'report.md', ...entry }, at.context as AgentContext<never>)
}
const file = (at: TestContext) => readFileSync(join(phaseFolder(at), 'out'), 'utf8')
const big = (bytes: number) => 'abcdefghijklmnop'.repeat(Math.ceil(bytes / 16)).slice(0, bytes)
const MiB = 1024 * 1024
const puts = () =>
  drive.seen.filter(({ method }) => method === 'PUT').map(({ headers }) => headers.get('content-range'))

await testAgent({
  file: join(import.meta.dir, '../../agents/filestore.ts'),
  vendor: fakeDrive,
  settings: ({ url }) => settings(url),
  examples: {
    source: {
      entry: { name: 'out', ref: 'file-1' },
      request: /^GET \/drive\/v3\/files\/file-1$/,
      scope: 'https://www.googleapis.com/auth/drive',
      names: 'file-1',
    },
    target: {
      entry: { name: 'up', ref: 'folder-1', file: 'report.md' },
      files: { 'report.md': 'the report' },
      request: /^POST \/upload\//,
      scope: 'https://www.googleapis.com/auth/drive',
      names: 'folder-1',
    },
  },
})

describe('signing in', () => {
  test('one token serves many requests, until it is refused', async () => {
    await read({ ref: 'file-1' })
    await read({ ref: 'file-1' })
    expect(drive.tokens).toBe(1)
    drive.revoke()
    await read({ ref: 'file-1' })
    expect(drive.tokens).toBe(2)
  })

  test('with a refresh token', async () => {
    const extra = { credentials_file: credentials('oauth'), auth_mode: 'oauth' }
    expect((await read({ ref: 'file-1' }, begin('read', extra))).data).toMatchObject({ id: 'file-1' })
  })

  test('a token is asked for where the file says', async () => {
    const token_uri = `${drive.url}/token`
    await read({ ref: 'file-1' }, begin('read', { credentials_file: credentials('service_account', { token_uri }) }))
    expect(drive.seen[0]!.path).toBe('/token')
  })

  test('a file that is revoked, or gone since the settings were judged', async () => {
    const path = credentials('service_account', { client_email: 'x@y' })
    const revoked = await failureOf(read({ ref: 'file-1' }, begin('once', { credentials_file: path })))
    expect(revoked).toMatchObject({ code: 'unauthorized', sent: 'no' })
    expect(revoked.message).toContain('invalid_grant')
    rmSync(path)
    const gone = await failureOf(read({ ref: 'file-1' }, begin('once', { credentials_file: path })))
    expect(gone).toMatchObject({ code: 'invalid_settings', sent: 'no' })
    expect(gone.message).toContain(`agents.filestore.credentials_file is ${path}, where there is no file: write`)
    for (const canary of CANARIES) expect(`${revoked.message} ${revoked.hint} ${revoked.cause}`).not.toContain(canary)
  })
})

describe('the settings are judged:', () => {
  const person = () => ({ credentials_file: credentials('oauth'), auth_mode: 'oauth' })
  const written = (content: string) => {
    const path = join(folder(), 'file.json')
    writeFileSync(path, content)
    return path
  }
  test.each([
    [
      'a file that is for the other mode',
      () => ({ credentials_file: credentials('oauth') }),
      'auth_mode',
      'write oauth',
    ],
    ['a folder', () => ({ credentials_file: folder() }), 'credentials_file', 'which is not a file: write the path'],
    [
      'no JSON',
      () => ({ credentials_file: written('{') }),
      'credentials_file',
      'which contains no JSON: write the path',
    ],
    [
      'a file of something else',
      () => ({ credentials_file: written('{"client_email": "x"}') }),
      'credentials_file',
      'which has no private_key: write the path',
    ],
    [
      'a broken key',
      () => ({ credentials_file: credentials('service_account', { private_key: 'canary-of-a-key' }) }),
      'credentials_file',
      'whose private_key is incomplete: write the path',
    ],
    ['a person in whose name a person acts', () => ({ ...person(), subject: 'me@acme.test' }), 'subject', 'remove it'],
  ])('%s', (_, given, key, words) => {
    const found = Object.entries(filestore.check!(given()))
    expect(found).toEqual([[key, expect.stringContaining(words)]])
    for (const canary of [...CANARIES, 'canary-of-a-key']) expect(found[0]![1]).not.toContain(canary)
  })

  test('nothing is wrong with an account of either kind', () => {
    expect(filestore.check!(person())).toEqual({})
    expect(filestore.check!({ credentials_file: FILE, subject: 'me@acme.test' })).toEqual({})
  })

  test.each(['installed', 'web'])('the file of an OAuth client (%s)', kind => {
    const content = { [kind]: { client_id: 'c', client_secret: 'canary-client-secret', redirect_uris: [] } }
    const credentials_file = written(JSON.stringify(content))
    for (const auth_mode of ['service_account', 'oauth']) {
      const { credentials_file: words } = filestore.check!({ credentials_file, auth_mode })
      expect(words).toContain(
        'the file of an OAuth client, which names an application but no account: write the path of',
      )
      expect(words).not.toContain('canary-client-secret')
    }
  })
})

describe('an account', () => {
  test('acts for a person of its domain', async () => {
    await read({ ref: 'file-1' }, begin('read', { subject: 'ann@acme.test' }))
    expect(drive.subjects).toEqual(['ann@acme.test'])
    expect((await failureOf(read({ ref: 'none' }, begin('read', { subject: 'ann@acme.test' })))).hint).toContain(
      'share the file or its folder with ann@acme.test',
    )
  })

  test('that may not act for a person says what the administrator must allow', async () => {
    const error = await failureOf(read({ ref: 'file-1' }, begin('read', { subject: 'boss@acme.test' })))
    expect(error).toMatchObject({ code: 'unauthorized', sent: 'no' })
    expect(error.message).toContain('sign in to Google as boss@acme.test')
    for (const said of ['domain-wide delegation', 'https://www.googleapis.com/auth/drive', 'agents.filestore.subject'])
      expect(error.hint).toContain(said)
  })

  test('is found at ~', async () => {
    const home = process.env.HOME
    process.env.HOME = dirname(FILE)
    const at = begin('read', { credentials_file: `~/${basename(FILE)}` })
    await read({ ref: 'file-1' }, at).finally(() => {
      process.env.HOME = home
    })
    expect(file(at)).toBe('the plan')
  })
})

test.each([
  ['https://drive.google.com/file/d/file-1/view?usp=sharing', false],
  ['https://docs.google.com/document/d/file-1/edit#heading=h.1', false],
  ['https://drive.google.com/open?id=file-1', false],
  ['https://drive.google.com/drive/u/0/folders/folder-1?usp=sharing', true],
])('the address %s of a browser is understood', async (ref, isFolder) => {
  const { data } = await read({ ref })
  expect(data).toMatchObject(isFolder ? { items: [], total: 0 } : { id: 'file-1' })
})

describe('downloading', () => {
  test('a file, under the name of the entry', async () => {
    const at = begin()
    const { data } = await read({ ref: 'file-1' }, at)
    expect(data).toEqual({
      id: 'file-1',
      name: 'plan 🎉/..',
      size: 8,
      md5: new Bun.CryptoHasher('md5').update('the plan').digest('hex'),
      url: 'https://drive.test/file/d/file-1/view',
      type: 'text/plain',
    })
    expect(file(at)).toBe('the plan')
  })

  test.each([
    ['document', undefined, 'text/plain'],
    ['document', 'application/pdf', 'application/pdf'],
    ['document', 'md', 'text/markdown'],
    ['spreadsheet', undefined, 'text/csv'],
    ['spreadsheet', 'xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
    ['drawing', undefined, 'image/png'],
  ])('a %s exported as %p', async (kind, as, type) => {
    add(drive, { id: 'doc', name: 'Doc', mimeType: `application/vnd.google-apps.${kind}`, parents: ['root'] })
    const at = begin()
    const { data } = await read({ ref: 'doc', ...(as && { export: as }) }, at)
    expect(file(at)).toBe(`Doc as ${type}`)
    expect(data).toMatchObject({ id: 'doc', type, md5: null, size: file(at).length })
  })

  test('what cannot be exported', async () => {
    add(drive, { id: 'form', name: 'F', mimeType: 'application/vnd.google-apps.form', parents: ['root'] })
    expect((await failureOf(read({ ref: 'form' }))).code).toBe('invalid_request')
    expect((await failureOf(read({ ref: 'file-1', export: 'pdf' }))).code).toBe('invalid_request')
    drive.fail(/\/export$/, () => refusal(403, { error: { errors: [{ reason: 'exportSizeLimitExceeded' }] } }))
    expect((await failureOf(read({ ref: 'form', export: 'pdf' }))).hint).toContain('10 MB')
  })

  test('a shortcut leads to its file', async () => {
    const mimeType = 'application/vnd.google-apps.shortcut'
    add(drive, { id: 's', name: 'S', mimeType, parents: ['root'], shortcutDetails: { targetId: 'file-1' } })
    expect((await read({ ref: 's' })).data).toMatchObject({ id: 'file-1', name: 'plan 🎉/..' })
  })

  test('a file that changes meanwhile leaves nothing', async () => {
    const stale = { id: 'file-1', name: 'x', mimeType: 'text/plain', md5Checksum: '0'.repeat(32) }
    drive.fail(/file-1$/, () => Response.json(stale))
    const at = begin()
    expect(await failureOf(read({ ref: 'file-1' }, at))).toMatchObject({ code: 'conflict', retryable: true })
    expect(existsSync(join(phaseFolder(at), 'out'))).toBe(false)
  })

  test.each(['', '.', '..'])('%p is no id', async ref => {
    expect((await failureOf(read({ ref }))).code).toBe('invalid_request')
  })
})

describe('listing', () => {
  const fill = (count: number) => {
    for (let n = 0; n < count; n++) {
      add(drive, { id: `id-${n}`, name: `${n}`, mimeType: 'text/plain', parents: ['folder-1'], content: `${n}` })
    }
  }

  test.each(['folder-1', 'folder/folder-1'])('%s, up to the limit', async ref => {
    fill(120)
    const at = begin()
    const { data } = await read({ ref }, at)
    expect(data).toMatchObject({ truncated: true })
    const { items } = data as { items: object[] }
    expect(items).toHaveLength(100)
    expect(items[0]).toMatchObject({ id: 'id-0', name: '0', size: 1, type: 'text/plain' })
    expect(JSON.parse(file(at)).items).toHaveLength(100)
  })

  test('over pages', async () => {
    fill(1_100)
    const { data } = await read({ ref: 'folder/folder-1', limit: 5_000 })
    expect(data).toMatchObject({ total: 1_100, truncated: false })
  })

  test('a folder that is empty, one that is none, one that is not there', async () => {
    expect((await read({ ref: 'folder/folder-1' })).data).toEqual({ items: [], total: 0, truncated: false })
    expect((await failureOf(read({ ref: 'folder/file-1' }))).code).toBe('not_found')
    const error = await failureOf(read({ ref: "folder/it's\\" }))
    expect(error).toMatchObject({ code: 'not_found' })
    expect(error.hint).toContain('share the file or its folder with robot@acme.test')
    expect(error.message).toContain("get it's")
  })

  test('pages that never end', async () => {
    drive.fail(/files$/, () => Response.json({ files: [], nextPageToken: crypto.randomUUID() }), { times: 1_000 })
    add(drive, { id: 'f', name: 'f', mimeType: FOLDER, parents: ['root'] })
    expect((await failureOf(read({ ref: 'folder/f' }))).code).toBe('endless')
  })
})

describe('uploading', () => {
  const uploaded = () => drive.files.filter(({ parents }) => parents.includes('folder-1'))

  test.each([0, 9, 5 * MiB])('%d bytes, in one request', async size => {
    const { data, external } = await write(big(size))
    const [made] = uploaded()
    expect(made).toMatchObject({ name: 'report.md', content: big(size) })
    const url = `https://drive.test/file/d/${made!.id}/view`
    expect(data).toMatchObject({ id: made!.id, name: 'report.md', size, url })
    expect(external).toEqual({ id: made!.id, url })
    expect(puts()).toEqual([])
  })

  test('above 5 MiB in chunks', async () => {
    const content = big(17 * MiB + 5)
    const { data } = await write(content, { title: "it's 🎉/.." })
    expect(uploaded()).toMatchObject([{ name: "it's 🎉/..", content }])
    expect(data).toMatchObject({ size: content.length })
    const total = content.length
    expect(puts()).toEqual([
      `bytes 0-${8 * MiB - 1}/${total}`,
      `bytes ${8 * MiB}-${16 * MiB - 1}/${total}`,
      `bytes ${16 * MiB}-${total - 1}/${total}`,
    ])
  })

  test('goes on where it broke off, and where Drive kept less than it was sent', async () => {
    const content = big(9 * MiB)
    drive.fail(/^PUT/, () => refusal(503))
    drive.fail(/^PUT/, () => refusal(500), { done: true })
    drive.keep = 6 * MiB
    await write(content)
    expect(uploaded()).toMatchObject([{ content }])
    expect(puts().filter(range => range!.includes('*')).length).toBeGreaterThan(0)
  })

  test('whose last reply was lost is complete', async () => {
    drive.fail(/^PUT/, () => refusal(500), { done: true })
    const { data } = await write(big(6 * MiB))
    expect(uploaded()).toHaveLength(1)
    expect(data).toMatchObject({ id: uploaded()[0]!.id })
  })

  test('whose session is gone: nobody knows', async () => {
    drive.fail(/^PUT/, () => refusal(404))
    expect(await failureOf(write(big(6 * MiB)))).toMatchObject({ code: 'not_found', sent: 'unknown' })
  })

  test('that was refused was not done; a 5xx leaves it open', async () => {
    drive.fail(/^POST \/upload/, () => refusal(403, { error: { errors: [{ reason: 'storageQuotaExceeded' }] } }))
    const error = await failureOf(write('x'))
    expect(error).toMatchObject({ code: 'forbidden', sent: 'no' })
    expect(error.hint).toContain('shared drive')
    drive.fail(/^POST \/upload/, () => refusal(502), { times: 2 })
    expect((await failureOf(write('x'))).sent).toBe('unknown')
    expect((await failureOf(write(big(6 * MiB)))).sent).toBe('no')
  })

  test('waits when Drive says 403 for asking too often', async () => {
    const reason = { error: { message: 'long '.repeat(100), errors: [{ reason: 'userRateLimitExceeded' }] } }
    drive.fail(/^POST \/upload/, () => refusal(403, reason))
    await write('x')
    expect(uploaded()).toHaveLength(1)
  })

  test('replaces the one file of that name, or makes it', async () => {
    const at = () => begin('idempotent')
    const entry = { mode: 'replace', title: "it's" }
    await write('one', entry, at())
    await write(big(6 * MiB), entry, at())
    await write('three', entry, at())
    expect(uploaded()).toMatchObject([{ name: "it's", content: 'three' }])
    add(drive, { id: 'twin', name: "it's", mimeType: 'text/plain', parents: ['folder-1'], content: '' })
    expect(await failureOf(write('four', entry, at()))).toMatchObject({ code: 'conflict', sent: 'no' })
  })

  test('creates beside another of that name', async () => {
    await write('one')
    await write('two')
    expect(uploaded()).toHaveLength(2)
  })

  test('is found by its key', async () => {
    const at = begin('once')
    const find = () => target.find!({ name: 'up', ref: 'folder-1', file: 'report.md' }, at.context as never)
    expect(await find()).toBeNull()
    await write('x', {}, at)
    expect((await find())!.data).toMatchObject({ id: uploaded()[0]!.id })
    at.context = { ...at.context, key: 'another' }
    expect(await find()).toBeNull()
  })

  test.each([true, false])(
    'in a run: one file, whether a lost reply was of one that was written (%p) or not',
    async done => {
      drive.fail(/^POST \/upload/, () => refusal(502), { done })
      const outcome = await outcomeOf({
        agent: filestore,
        name: 'filestore',
        settings: settings(drive.url),
        phase: {
          retry: { attempts: 2, backoff: '1ms' },
          target_entries: [{ name: 'up', ref: 'folder-1', file: 'report.md' }],
        },
        files: { 'report.md': 'x' },
      })
      expect(outcome).toMatchObject({ state: 'completed', data: { name: 'report.md' } })
      expect(uploaded()).toHaveLength(1)
    },
  )

  test('the effect follows the mode', () => {
    const effect = target.effect as (entry: object) => Effect
    expect([effect({}), effect({ mode: 'create' }), effect({ mode: 'replace' })]).toEqual([
      'once',
      'once',
      'idempotent',
    ])
  })
})

/** A Drive that gives tokens and sessions, and says back all that it is sent, as refusals and as names of files. */
function echoingDrive() {
  /** What it gave out, and what it was given to sign in. */
  const secrets: string[] = []
  const give = (name: string) => {
    const secret = `canary/of+${name}-${crypto.randomUUID()}`
    secrets.push(secret)
    return secret
  }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { origin, pathname, search, searchParams } = new URL(request.url)
      const body = await request.text()
      const assertion = new URLSearchParams(body).get('assertion')
      if (assertion) secrets.push(assertion)
      if (pathname === '/token') return Response.json({ access_token: give('token'), expires_in: 3_599 })
      const given = request.headers.get('authorization') ?? ''
      if (searchParams.get('uploadType') === 'resumable' && request.method === 'POST') {
        return new Response(null, {
          headers: { location: `${origin}/upload?upload_id=${encodeURIComponent(give('session'))}` },
        })
      }
      if (pathname.endsWith('/generateIds')) return Response.json({ ids: ['new-1'] })
      if (pathname === '/drive/v3/files') return Response.json({ files: [] })
      if (pathname.endsWith('/named') && searchParams.get('alt') === 'media') return new Response('content')
      if (pathname.endsWith('/named')) return Response.json({ id: 'named', name: given, mimeType: 'text/plain' })
      const session = searchParams.get('upload_id') ?? ''
      // What a form holds, decoded: the whole of an assertion is longer than what errors quote.
      const form = [...new URLSearchParams(body.slice(0, 4_000)).values()].filter(value => value.length < 200)
      const message = [given, btoa(given), session, search, ...form].join(' ')
      return refusal(400, message)
    },
  })
  return { url: server.url.origin, secrets, [Symbol.dispose]: () => void server.stop(true) }
}

test('what Drive says back shows no secret that was learnt while the daemon ran', async () => {
  using echoing = echoingDrive()
  const { url, secrets } = echoing
  // Keys are read when the daemon starts; these are put in their place later.
  const person = {
    client_id: 'client-1',
    client_secret: 'canary-secret-5e1b7c',
    refresh_token: 'canary-refresh-8d2f4a',
  }
  const { private_key } = JSON.parse(readFileSync(FILE, 'utf8'))
  const robot = { client_email: 'robot@acme.test', private_key, token_uri: `${url}/refused` }
  const keys = files({ 'person.json': '{}', 'refused.json': '{}', 'robot.json': '{}' })
  const account = (name: string, auth_mode: string) => ({
    base_url: url,
    auth_mode,
    credentials_file: join(keys, `${name}.json`),
  })
  const agents = {
    filestore: account('person', 'oauth'),
    'filestore@refused': account('refused', 'oauth'),
    'filestore@robot': account('robot', 'service_account'),
  }
  const home = folder()
  writeFileSync(join(home, 'settings.yml'), JSON.stringify({ agents }), { mode: 0o600 })
  const workspace = files({ 'big.txt': big(6 * MiB) })
  const daemon = await spawnDaemon({ home, env: { CADRE_LOG_LEVEL: 'debug' } })
  writeFileSync(join(keys, 'person.json'), JSON.stringify(person))
  writeFileSync(join(keys, 'refused.json'), JSON.stringify({ ...person, token_uri: `${url}/refused` }))
  writeFileSync(join(keys, 'robot.json'), JSON.stringify(robot))

  const source = (agent: string, ref: string) => ({ agent, sources: [{ name: 'out', ref }] })
  const upload = { name: 'up', ref: 'folder', file: 'big.txt', mode: 'replace' }
  const phases = [
    source('filestore', 'refused'),
    source('filestore', 'named'),
    source('filestore@refused', 'x'),
    source('filestore@robot', 'x'),
    { agent: 'filestore', target_entries: [upload] },
  ].map((phase, at) => ({ name: `p${at}`, depends_on: [], on_failure: 'continue', ...phase }))
  const team = { name: '@local/echo', version: '1.0.0', phases }
  const { run_id } = await daemon.call('/v1/runs/start', {
    path: files({ 'team.yml': JSON.stringify(team) }),
    workspace,
  })
  const heard = [await daemon.ended(run_id), await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })]
  for (const what of ['get', 'why', 'logs']) heard.push(await daemon.call(`/v1/runs/${what}`, { run_id }))
  await daemon.stop()
  const doctor = await command(['doctor', 'filestore'], { home })

  const states = heard[1].phases.map(({ state }: { state: string }) => state)
  expect(states).toEqual(['failed', 'completed', 'failed', 'failed', 'failed'])
  expect(heard[1].phases[1].data.name).toBe('Bearer ***')
  expect(doctor.stdout).toContain('***')
  const all = [...secrets, person.client_secret, person.refresh_token, private_key]
  for (const kind of ['canary/of+token', 'canary/of+session', 'eyJ']) {
    expect(secrets.some(secret => secret.startsWith(kind))).toBe(true)
  }
  const below = readdirSync(home, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  const paths = below.map(({ parentPath, name }) => join(parentPath, name))
  const texts: [string, string][] = [
    ['replies', JSON.stringify(heard)],
    ['output', daemon.output.stdout + daemon.output.stderr],
    ['doctor', doctor.stdout + doctor.stderr],
    ...paths.map((path): [string, string] => [path, readFileSync(path, 'latin1')]),
  ]
  const places = texts.flatMap(([where, text]) =>
    all.flatMap(secret =>
      [...variantsOf(secret)].filter(variant => text.includes(variant)).map(found => [where, found]),
    ),
  )
  expect(places).toEqual([])
})

test.each([
  [/^GET \/drive\/v3\/files$/, { ref: 'folder/folder-1' }],
  [/^GET \/drive\/v3\/files\/file-1$/, { ref: 'file-1' }],
])('a foreign reply to %s is an error that says so', async (request, entry) => {
  for (const reply of [{ files: [{ hello: 1 }] }, { id: 7 }, [], { files: 'none' }]) {
    using other = fakeDrive()
    other.fail(request, () => Response.json(reply))
    const at = begin('read', { base_url: other.url })
    expect(await failureOf(read(entry, at))).toMatchObject({ code: 'unexpected_reply' })
    expect(existsSync(join(phaseFolder(at), 'out'))).toBe(false)
  }
})
