// Asked why a run ended as it did, everybody gives the same answer: the daemon, its command line, the hub, and the command
// line with `--hub`. The page of the hub makes the hub's call.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
let daemon: RunningDaemon
let quiet: RunningDaemon
let server: Bun.Server<undefined>
/** A credential with which the command line calls the hub. */
let key: string
const go = join(folder(), 'go')

beforeAll(async () => {
  hub = await startTestHub()
  // It may have taken what is written to it.
  server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('later', { status: 500 }) })
  // A daemon that enrols learns which teams are listed.
  await hub.addTeam(`${head('local')}concurrency: { key: here }\nphases:\n  - { name: ask, ${ASK} }\n`)
  const [one, two] = await Promise.all([enrolled('one', ''), enrolled('two', 'sync: status\n')])
  daemon = one
  quiet = two
  key = (await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'asker' })).token
})
afterAll(async () => {
  await Promise.all([daemon.stop(), quiet.stop(), server.stop(true)])
  await hub.stop()
})

async function enrolled(name: string, settings: string): Promise<RunningDaemon> {
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const home = folder()
  const chat = `agents: { chat: { channels: { ops: "${server.url.href}" } } }\n`
  const common = 'network: { allow: [127.0.0.1] }\npackages: { sandbox: none }\n'
  writeFileSync(join(home, 'settings.yml'), `${common}${chat}labels: [${name}]\n${settings}`, { mode: 0o600 })
  return spawnDaemon({
    home,
    env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: name, CADRE_SETTLE: '0s' },
  })
}

// biome-ignore lint/suspicious/noExplicitAny: the data of all calls
type Data = any

const exec = (run: string) => `agent: exec, commands: [{ name: c, run: ${JSON.stringify(run)} }]`
const failing = (code: number) => exec(`exit ${code}`)
const ASK = 'type: gate, review: { prompt: "Go on?" }'
const POST = () => `agent: http, target_entries: [{ name: p, url: "${server.url.href}", method: POST, body: x }]`

interface Kind {
  /** What stands below `phases` in its team. */
  phases: () => string
  /** A team that it calls. */
  below?: string
  state: string
  /** Brings the run to its end. */
  meanwhile?: (run: string) => Promise<unknown>
  /** The daemon that takes it; `one` if it is not given. */
  label?: string
  /** What the first line says. */
  says: RegExp
  /** The phase of the last step. */
  cause: string | null
}

const cancel = (run_id: string) => hub.ok(hub.admin, 'dispatch/cancel', { run_id })
const reviewOf = async (run: string): Promise<Data> => {
  const { runs } = await hub.ok(hub.admin, 'runs/tree', { run_id: run })
  for (const { run_id } of runs) {
    const { reviews } = await hub.ok(hub.admin, 'reviews/list', { run_id, state: 'pending' })
    if (reviews.length > 0) return reviews[0]
  }
  throw new Error(`run ${run} asks nobody`)
}
const decide = async (run: string, decision: string) =>
  hub.ok(hub.admin, 'reviews/decide', { review_id: (await reviewOf(run)).id, decision })
const reaches = (run_id: string, state: string) =>
  until(async () => {
    const { data: run } = await hub.call(hub.admin, 'runs/get', { run_id })
    return run?.state === state && run
  }, `run ${run_id} to be ${state}`)

const KINDS: Record<string, Kind> = {
  'a leaf fails': {
    phases: () =>
      `- { name: a, ${exec('echo broken >&2; exit 4')} }\n  - { name: b, ${exec('true')}, depends_on: [a] }`,
    ...{ state: 'failed', says: /phase a \(exec\) failed: command c exited with code 4: broken/, cause: 'a' },
  },
  'an item of a map fails': {
    phases: () =>
      `- { name: each, type: map, items: [0, 3], key: "k{{ item }}", team: ./below, inputs: { code: "{{ item }}" } }`,
    below: `inputs: [{ name: code, type: number }]
phases:
  - { name: deep, agent: exec, commands: [{ name: c, env: { CODE: "{{ inputs.code }}" }, run: 'exit "$CODE"' }] }`,
    ...{
      state: 'failed',
      says: /^Sub-run k3 \(.*phase deep \(exec\) failed: command c exited with code 3/,
      cause: 'deep',
    },
  },
  'one failure is passed over, and another is not': {
    phases: () =>
      `- { name: soft, ${failing(2)}, on_failure: continue }\n  - { name: hard, ${failing(3)}, depends_on: [soft] }`,
    ...{ state: 'failed', says: /phase hard/, cause: 'hard' },
  },
  'the first failure is the later one in the file': {
    phases: () => `- { name: late, ${exec('sleep 0.4; exit 3')} }\n  - { name: soon, ${failing(4)} }`,
    ...{ state: 'failed', says: /phase soon/, cause: 'soon' },
  },
  'the run takes too long': {
    phases: () => `- { name: a, ${exec('sleep 30')} }\ntimeout: 300ms`,
    ...{ state: 'failed', says: /it took longer than its timeout|timeout/, cause: null },
  },
  'a person cancels the run': {
    phases: () => `- { name: a, ${exec('sleep 30')} }`,
    meanwhile: run => reaches(run, 'running').then(() => cancel(run)),
    ...{ state: 'cancelled', says: /was cancelled after/, cause: null },
  },
  'a person cancels a run that asks': {
    phases: () => `- { name: ask, ${ASK} }`,
    meanwhile: run => reaches(run, 'awaiting_input').then(() => cancel(run)),
    ...{ state: 'cancelled', says: /was cancelled after/, cause: null },
  },
  'a gate is rejected': {
    phases: () => `- { name: ask, ${ASK} }`,
    meanwhile: run => reaches(run, 'awaiting_input').then(() => decide(run, 'reject')),
    ...{ state: 'failed', says: /phase ask \(gate\) failed/, cause: 'ask' },
  },
  'a failure asks a person': {
    phases: () => `- { name: a, ${failing(3)}, on_failure: escalate }`,
    ...{ state: 'awaiting_input', says: /waits for a person: phase a/, cause: 'a' },
  },
  'a gate asks a person': {
    phases: () => `- { name: ask, ${ASK} }`,
    ...{ state: 'awaiting_input', says: /waits for a person: phase ask \(gate\), review/, cause: 'ask' },
  },
  'another phase fails while a gate asks': {
    phases: () => `- { name: ask, ${ASK} }\n  - { name: slow, ${exec('sleep 1; exit 3')} }`,
    meanwhile: run =>
      until(async () => {
        const { phases } = await hub.ok(hub.admin, 'runs/phases', { run_id: run })
        return phases[1]?.state === 'failed'
      }, 'the failure'),
    ...{ state: 'awaiting_input', says: /waits for a person: phase ask/, cause: 'ask' },
  },
  'a sub-run asks a person': {
    phases: () => '- { name: down, type: team, team: ./below }',
    below: `phases:\n  - { name: ask, ${ASK} }`,
    ...{ state: 'awaiting_input', says: /^Sub-run .* waits for a person: phase ask/, cause: 'ask' },
  },
  'an output has the wrong type': {
    phases: () =>
      `- { name: a, ${exec('true')} }\noutputs: [{ name: n, type: number, value: "{{ dyn(phases.a.text) }}" }]`,
    ...{ state: 'completed', says: /completed .*, but output n could not be made: .*declared number/, cause: null },
  },
  'nobody knows whether a write arrived': {
    phases: () => `- { name: post, ${POST()} }`,
    ...{ state: 'awaiting_input', says: /waits for a person: phase post \(http/, cause: 'post' },
  },
  'a resumed run completes': {
    phases: () => `- { name: a, ${exec(`test -e ${go}`)} }`,
    meanwhile: async run => {
      await reaches(run, 'failed')
      writeFileSync(go, '')
      await hub.ok(hub.admin, 'dispatch/resume', { run_id: run })
    },
    ...{ state: 'completed', says: /completed after/, cause: null },
  },
  'phases are skipped because of a failure': {
    phases: () => `- { name: a, ${failing(1)} }\n  - { name: b, ${exec('true')}, depends_on: [a] }
  - { name: c, ${exec('true')}, depends_on: [b] }`,
    ...{ state: 'failed', says: /phase a/, cause: 'a' },
  },
  'a completed run passed over a failure': {
    phases: () =>
      `- { name: a, ${failing(3)}, on_failure: continue }\n  - { name: b, ${exec('true')}, depends_on: [a] }`,
    ...{ state: 'completed', says: /completed after/, cause: null },
  },
  'items passed over a failure': {
    phases: () =>
      `- { name: each, type: map, items: [0, 3], key: "k{{ item }}", phases: [{ name: a, on_failure: continue, agent: exec, env: { N: "{{ item }}" }, commands: [{ name: c, run: "exit $N" }] }] }`,
    ...{ state: 'completed', says: /completed after/, cause: null },
  },
  'a listener cannot tell': {
    phases: () => `- { name: a, ${failing(3)} }\n  - { name: tell, agent: chat, notify: [on_fail] }`,
    ...{ state: 'failed', says: /phase a/, cause: 'a' },
  },
  'the daemon keeps texts to itself': {
    phases: () => `- { name: a, ${exec('echo hidden; exit 5')} }`,
    ...{ state: 'failed', label: 'two', says: /phase a \(exec\) failed: command c exited with code 5/, cause: 'a' },
  },
  'all goes well': {
    phases: () => `- { name: a, ${exec('true')} }`,
    ...{ state: 'completed', says: /completed after/, cause: null },
  },
}

const head = (name: string) => `name: "@admin/${name}"\nversion: 1.0.0\n`
async function dispatch(name: string, { phases, below, label = 'one' }: Kind): Promise<string> {
  await hub.addTeam({
    'team.yml': `${head(name)}phases:\n  ${phases()}\n`,
    ...(below !== undefined && { 'below/team.yml': `${head('below')}${below}\n` }),
  })
  const team = `@admin/${name}`
  return (await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team, requires: { labels: [label] } })).run_id
}

/** What has to be equal. The commands differ, because some work only on the machine of the run. */
const facts = ({ run_id, lines, chain, cancelled, items }: Data) => ({ run_id, lines, chain, cancelled, items })
const atHub = (run_id: string): Promise<Data> => hub.ok(hub.admin, 'runs/why', { run_id })
const commandLine = async (run_id: string, ...flags: string[]): Promise<Data> => {
  const { stdout, stderr } = await command(['why', run_id, '--json', ...flags], {
    home: flags.length > 0 ? folder() : daemon.home,
    env: flags.length > 0 ? { CADRE_API_KEY: key } : {},
  })
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout)
}

/** The answer of the daemon, which the hub gives, too, as soon as it has heard it. */
async function compare(run_id: string, owner: RunningDaemon): Promise<Data> {
  const both = async () => [await owner.call('/v1/runs/why', { run_id }), await atHub(run_id)] as const
  const areEqual = async () => {
    const [own, its] = await both()
    return Bun.deepEquals(facts(own), facts(its))
  }
  await until(areEqual, 'the same answer', 5_000).catch(() => {})
  const [own, its] = await both()
  expect(facts(its)).toEqual(facts(own))
  return own
}

test.each(Object.entries(KINDS))(
  '%s: everybody says the same',
  async (name, kind) => {
    const run_id = await dispatch(`k${Object.keys(KINDS).indexOf(name)}`, kind)
    await kind.meanwhile?.(run_id)
    await reaches(run_id, kind.state)
    const owner = kind.label === 'two' ? quiet : daemon
    const found = await compare(run_id, owner)
    expect(found.lines[0]).toMatch(kind.says)
    expect(found.chain.at(-1).phase).toBe(kind.cause)
    // So does the record of the run, of what its listeners were to send and how long it lived.
    const { deliveries, lived_ms } = await owner.call('/v1/runs/get', { run_id })
    const atHub = await hub.ok(hub.admin, 'runs/get', { run_id })
    expect([atHub.deliveries, atHub.lived_ms]).toEqual([deliveries, lived_ms])
    // Each run below says the same, too.
    const { runs } = await hub.ok(hub.admin, 'runs/tree', { run_id })
    for (const below of runs.slice(1)) await compare(below.run_id, owner)
    if (owner !== daemon) return
    const [here, there] = await Promise.all([commandLine(run_id), commandLine(run_id, '--hub', hub.url)])
    expect(facts(here)).toEqual(facts(found))
    expect(facts(there)).toEqual(facts(found))
  },
  60_000,
)

/** What hub and command line say of a run that no daemon can explain. */
async function saidByHub(run_id: string): Promise<Data> {
  const found = await atHub(run_id)
  expect(facts(await commandLine(run_id, '--hub', hub.url))).toEqual(facts(found))
  return found
}
const queue = async (team: string, more: object = {}) =>
  (await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team, ...more })).run_id

test('a run that waits for its daemon or its key, or ended in the queue, is explained by the hub alone', async () => {
  const asks = `phases:\n  - { name: ask, ${ASK} }\n`
  const team = await hub.addTeam(`${head('keyed')}concurrency: { key: one }\n${asks}`)
  const first = await queue(team, { requires: { labels: ['one'] } })
  await reaches(first, 'awaiting_input')
  const second = await queue(team)
  const waits = await saidByHub(second)
  expect(waits.lines[0]).toMatch(
    new RegExp(`^Run \\S+ of @admin/keyed waits for run ${first}, which holds the key one`),
  )
  expect(waits.next).toEqual([
    ['watch', second],
    ['cancel', second],
  ])
  await cancel(second)
  expect(await saidByHub(second)).toMatchObject({
    lines: [
      expect.stringMatching(/ was cancelled\.$/),
      expect.stringContaining('Written outside: nothing that must happen only once'),
      'Started by admin (API).',
    ],
    next: [
      ['show', second],
      ['dispatch', team],
    ],
  })
  await cancel(first)
  await reaches(first, 'cancelled')
  const nowhere = await queue(team, { requires: { labels: ['elsewhere'] } })
  expect((await saidByHub(nowhere)).lines[0]).toMatch(/ waits for a daemon with label elsewhere=yes; online are /)
  await cancel(nowhere)
}, 60_000)

test('a run that waits for a key on its own machine is explained by its daemon', async () => {
  const start = async () => (await daemon.call('/v1/runs/start', { team: '@admin/local' })).run_id
  const [first, second] = [await start(), await start()]
  await reaches(second, 'queued')
  const found = await compare(second, daemon)
  expect(found.lines[0]).toContain(`waits for run ${first}, which holds the key here`)
  expect(found.next[0]).toEqual(['why', first])
  expect(facts(await commandLine(second))).toEqual(facts(found))
  expect(facts(await commandLine(second, '--hub', hub.url))).toEqual(facts(found))
  await cancel(second)
  await reaches(second, 'cancelled')
  await compare(second, daemon)
  await cancel(first)
}, 60_000)

test('a sub-run that failed leads to the resume of its top run only when that has ended, too', async () => {
  const name = 'goes-on'
  const run_id = await dispatch(name, {
    ...KINDS['a leaf fails']!,
    phases: () => `- { name: down, type: team, team: ./below }\n  - { name: ask, ${ASK} }`,
    below: `phases:\n  - { name: a, ${failing(3)} }`,
  })
  await reaches(run_id, 'awaiting_input')
  const { runs } = await hub.ok(hub.admin, 'runs/tree', { run_id })
  const below = runs[1].run_id
  await compare(below, daemon)
  const nextOf = async () => (await atHub(below)).next
  expect(await nextOf()).toEqual([['why', run_id]])
  await decide(run_id, 'approve')
  await reaches(run_id, 'failed')
  expect(await nextOf()).toEqual([['resume', run_id]])
  expect((await daemon.call('/v1/runs/why', { run_id: below })).next).toEqual([['resume', run_id]])
}, 60_000)

test('the daemon is silent: the hub says so, and no explanation of before counts', async () => {
  const run_id = await dispatch('silent', { ...KINDS['a gate asks a person']!, label: 'two' })
  await reaches(run_id, 'awaiting_input')
  await quiet.kill('SIGKILL')
  await hub.skew(6 * 60_000)
  await reaches(run_id, 'crashed')
  const found = await saidByHub(run_id)
  expect(found.lines[0]).toMatch(/ has not ended, and its daemon has been silent for at least five minutes\.$/)
  expect(found.next).toEqual([
    ['watch', run_id],
    ['cancel', run_id],
  ])
}, 60_000)
