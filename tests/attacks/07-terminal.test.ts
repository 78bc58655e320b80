// A daemon of a plain member that still waits for approval, and a hub that nobody should trust, put hostile texts into
// everything that they may say. Whatever a command prints of it on a terminal is printable text and our own colours.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { command } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { hostileText, hostileTexts } from '../support/hostile.ts'
import { ADMIN_PASSWORD, startTestHub, type TestHub } from '../support/hub.ts'
import { type Mirror, startMirror } from '../support/hub-mirror.ts'
import { environmentAt } from '../support/program.ts'
import { randomFrom, seedOf } from '../support/random.ts'
import { phaseChange, reviewChange, runChange } from '../support/sync.ts'
import { obeyed, unseen } from '../support/terminal-bytes.ts'

setDefaultTimeout(300_000)
const random = randomFrom(seedOf('terminal'))
const hostile = (longest = 300) => hostileText(random, longest)
/** Commands of terminals, and names that turn the text beside them around. */
const WORST = `x\x1b]0;FORGED\x07\x1b[2J\x9b2J\r\n\u2028FORGED\u202e\u2066\u200b\u{e0041}`

let hub: TestHub
let mirror: Mirror
let member: { daemon_id: string; token: string }
const home = folder()
const run_id = crypto.randomUUID()
const review_id = crypto.randomUUID()

beforeAll(async () => {
  hub = await startTestHub()
  mirror = startMirror(hub.url)
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: '@admin/t' })
  const { token: mallory } = await hub.account('mallory')
  await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username: 'mallory', role: 'member' })
  const { token } = await hub.realmToken(mallory, hub.realm)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'd' })
  member = { daemon_id, token }
  expect((await command(['login', 'admin', '--hub', mirror.url], { home, stdin: ADMIN_PASSWORD })).code).toBe(0)
})
afterAll(async () => {
  await mirror[Symbol.asyncDispose]()
  await hub.stop()
})

/** Reports changes as the first of a new database, and returns the refusals by their place. */
async function report(...changes: object[]): Promise<(string | null)[]> {
  const { acked_seq, rejected } = await hub.ok(member.token, 'runs/sync', {
    ...{ daemon_id: member.daemon_id, epoch: crypto.randomUUID(), from_seq: 1 },
    changes: changes.map((change, index) => ({ seq: index + 1, ...change })),
  })
  expect(acked_seq).toBe(changes.length)
  const codes = new Map(rejected.map(({ seq, code }: { seq: number; code: string }) => [seq, code]))
  return changes.map((_, index) => (codes.get(index + 1) as string | undefined) ?? null)
}

/** What a command writes to a terminal, without the line ends of the terminal and our own picture of a run. */
async function onTerminal(...args: string[]): Promise<string> {
  const words = [process.execPath, join(import.meta.dir, '../../daemon.ts'), ...args]
  const line = words.map(word => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
  const env = { ...environmentAt(home), CADRE_HOME: home, TERM: 'xterm-256color', LANG: 'C.UTF-8' }
  const child = Bun.spawn(['script', '-qec', line, '/dev/null'], {
    ...{ env, cwd: home, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  const text = await child.stdout.text()
  await child.exited
  return text.replaceAll('\r\n', '\n').replace(/\x1b\[(\?(25|2026)[hl]|2K|0J|\d+A)|\r(?=\x1b)/g, '')
}

const NAMES: [field: string, change: (text: string) => object][] = [
  ['team', text => runChange(crypto.randomUUID(), { team: text, call_path: [text] })],
  ['call_path', text => runChange(crypto.randomUUID(), { call_path: [text] })],
  ['version', text => runChange(run_id, { version: text })],
  ['state of a run', text => runChange(run_id, { state: text })],
  ['key of an input', text => runChange(run_id, { inputs: { [text]: 1 } })],
  ['key of an output', text => runChange(run_id, { outputs: { [text]: 1 } })],
  ['code of an error', text => runChange(run_id, { error: { code: text, message: 'm' } })],
  ['phase of an error', text => runChange(run_id, { error: { code: 'c', message: 'm', phase: text } })],
  ...['name', 'type', 'agent', 'action', 'state'].map((field): [string, (text: string) => object] => [
    `${field} of a phase`,
    text => {
      const change = phaseChange(run_id, [])
      return { ...change, phase: { ...change.phase, [field]: text } }
    },
  ]),
  ...['phase', 'kind', 'state', 'decision'].map((field): [string, (text: string) => object] => [
    `${field} of a review`,
    text => reviewChange(run_id, crypto.randomUUID(), { [field]: text }),
  ]),
  [
    'phase of a receipt',
    text => ({ kind: 'receipt', run_id, attempt: 1, receipt: { phase: text, entry: 'e', state: 'sent' } }),
  ],
  [
    'stream of a line',
    text => ({ kind: 'log', run_id, attempt: 1, lines: [{ seq: 1, phase: null, at: 1, stream: text, text: '' }] }),
  ],
  ['kind of a change', text => ({ kind: text, run_id, attempt: 1 })],
]

test.each(NAMES)('%s: what breaks its grammar is rejected, and holds up nothing', async (_, change) => {
  const texts = [WORST, 'a\u202eb', 'a\u200bb', 'a\nb', '\x1b[2J', 'a b', 'x'.repeat(1_200), '\u0430dmin']
  const changes = texts.map(change)
  const codes = await report(runChange(run_id), ...changes, runChange(run_id, { reason: 'after' }))
  expect(codes).toEqual([null, ...texts.map(() => 'invalid_request'), null])
})

test('a kind or a state that only a newer daemon has is kept as its text and shown as such', async () => {
  const id = crypto.randomUUID()
  const review = crypto.randomUUID()
  const phase = phaseChange(id, [])
  expect(
    await report(
      runChange(id, { state: 'hibernating', run_name: 'newer' }),
      { ...phase, phase: { ...phase.phase, state: 'dreaming', type: 'oracle' } },
      reviewChange(id, review, { kind: 'quorum' }),
    ),
  ).toEqual([null, null, null])
  mirror.change = (_, data) => data
  const says = async (...args: string[]) => (await command([...args, '--hub', hub.url], { home: adminHome })).stdout
  const adminHome = folder()
  await command(['login', 'admin', '--hub', hub.url], { home: adminHome, stdin: ADMIN_PASSWORD })
  expect(await says('runs')).toContain('newer')
  expect(await says('show', id)).toContain('hibernating')
  expect(await says('phases', id)).toMatch(/oracle|dreaming/)
  expect(await says('reviews')).toContain('quorum')
})

test('what a daemon offers is held to its grammar by itself, and a hostile name of the daemon is refused', async () => {
  const { daemon_id, token } = member
  for (const field of ['name', 'hostname', 'version']) {
    const { status } = await hub.call(token, 'daemons/register', { daemon_id, name: 'd', [field]: 'a\u202e\x1b[2J' })
    expect([field, status]).toEqual([field, 400])
  }
  const offer = {
    agents: [
      { name: WORST, version: '1' },
      { name: 'exec', version: WORST },
      { name: 'http', version: '1.0.0', doctor: 'later' },
    ],
    labels: { [WORST]: 'yes', gpu: WORST, region: 'eu' },
    workspaces: [WORST, 'a\u202eb', 'shop'],
  }
  await hub.ok(token, 'daemons/heartbeat', { daemon_id, ...offer })
  expect(await hub.ok(hub.admin, 'daemons/get', { daemon_id })).toMatchObject({
    agents: [{ name: 'http', version: '1.0.0', doctor: 'later' }],
    labels: { region: 'eu' },
    workspaces: ['shop'],
  })
})

/** Every command that shows what daemons and hubs said. */
const COMMANDS = [
  ...[
    ['runs', '--all'],
    ['tree', run_id],
    ['phases', run_id],
    ['show', run_id],
    ['why', run_id],
    ['logs', run_id],
  ],
  ...[['reviews'], ['watch', run_id], ['daemons', 'list'], ['daemons', 'doctor'], ['queue', 'list'], ['audit']],
  ...[
    ['orgs', 'list'],
    ['realms', 'list'],
    ['scopes', 'list'],
    ['tokens', 'list'],
    ['teams', 'list'],
  ],
  ...[
    ['decide', review_id, 'retry'],
    ['cancel', crypto.randomUUID()],
    ['members', 'list'],
    ['invite', 'list'],
  ],
]

test('texts of a daemon reach no terminal as commands', async () => {
  const text = () => (random.once(2) ? WORST : hostile())
  const lines = hostileTexts(random, 150).map((each, at) => ({
    seq: at + 1,
    phase: 'say',
    at: 5,
    stream: 'stdout',
    text: each,
  }))
  const error = { code: 'c', message: `${WORST}\n${text()}`, hint: text() }
  const phase = phaseChange(run_id, [{ name: text(), path: text(), bytes: 1, sha256: text() }] as never)
  const codes = await report(
    runChange(run_id, {
      ...{ state: 'awaiting_input', run_name: WORST, reason: WORST, workspace: text(), error },
      ...{ inputs: { a: text(), b: { [text()]: text() } }, outputs: { o: text() } },
      deliveries: [{ phase: text(), event: text(), state: 'failed', error: text() }, text()],
    }),
    { ...phase, phase: { ...phase.phase, state: 'failed', text: text(), reason: text(), error } },
    reviewChange(run_id, review_id, {
      ...{ phase: 'say', prompt: `${WORST}\nsecond ${text()}`, run_name: WORST, entries: [text(), { [text()]: 1 }] },
      inputs: [{ name: text(), type: 'string', required: true, secret: false, description: text() }],
    }),
    { kind: 'log', run_id, attempt: 1, lines, to: lines.length },
  )
  expect(codes).toEqual([null, null, null, null])
  mirror.change = (_, data) => data
  for (const args of COMMANDS.slice(0, 12)) {
    const said = await onTerminal(...args, '--hub', mirror.url)
    expect([args, obeyed(said)]).toEqual([args, []])
    expect([args, said.split('\n').filter(line => line.startsWith('FORGED'))]).toEqual([args, []])
  }
  expect(await onTerminal('runs', '--hub', mirror.url)).toContain('FORGED<U+202E>')
  for (const args of [['runs', '--all'], ['show', run_id], ['reviews'], ['logs', run_id], ['tree', run_id]]) {
    const { code, stdout } = await command([...args, '--hub', mirror.url, '--json'], { home })
    expect([args, code, unseen(stdout)]).toEqual([args, 0, []])
    const values = args[0] === 'logs' ? stdout.trimEnd().split('\n') : [stdout]
    for (const value of values) JSON.parse(value)
  }
  const shown = JSON.parse((await command(['show', run_id, '--hub', mirror.url, '--json'], { home })).stdout)
  expect(shown.run_name).toBe(WORST)
})

test('whatever a hub replies, in any field, reaches no terminal as a command', async () => {
  // Ids and numbers stay, so that commands go on to what they print.
  const KEPT = /^(id|run_id|root_run_id|parent_run_id|realm_id|daemon_id|job_id|org_id|token)$/
  const spoilt = (value: unknown, key = ''): unknown => {
    if (typeof value === 'string') return KEPT.test(key) ? value : random.once(2) ? WORST : hostile()
    if (Array.isArray(value)) return value.map(each => spoilt(each, key))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, spoilt(each, name)]))
  }
  mirror.change = (_, data) => spoilt(data)
  for (const args of COMMANDS.filter(([word]) => word !== 'watch')) {
    const said = await onTerminal(...args, '--hub', mirror.url)
    expect([args, obeyed(said)]).toEqual([args, []])
    expect([args, said.split('\n').filter(line => line.startsWith('FORGED'))]).toEqual([args, []])
  }
})
