// The commands about a hub, as people use them: one sets up a realm, another joins it, a daemon enrols, a team runs there
// and is watched from elsewhere. One hub and one daemon; the tests go on from each other.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { collect, command, files, type RunningDaemon, spawnDaemon, startCommand } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startFront } from '../support/front.ts'
import { ADMIN_PASSWORD, startTestHub, type TestHub } from '../support/hub.ts'
import { openHome } from '../support/sandbox.ts'
import { hasTmux, Window } from '../support/tmux.ts'

let hub: TestHub
let daemon: RunningDaemon
/** The homes of two people at machines of their own. */
const admin = folder()
const bob = folder()
const PASSWORD = 'a long password'
const ROOT = join(import.meta.dir, '../..')

setDefaultTimeout(60_000)

beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

interface How {
  home?: string
  stdin?: string
  env?: Record<string, string>
}

const words = (line: string) => line.split(' ').filter(word => word !== '')
const run = (line: string, { home = admin, ...how }: How = {}) => command(words(line), { home, ...how })

/** What a command prints that must succeed. */
async function says(line: string, how?: How): Promise<string> {
  const { code, stdout, stderr } = await run(line, how)
  if (code !== 0) throw new Error(`${line}: ${code} ${stderr}`)
  return stdout
}

/** What a command says on stderr that must succeed. */
async function tells(line: string, how?: How): Promise<string> {
  const { code, stderr } = await run(line, how)
  expect([line, code]).toEqual([line, 0])
  return stderr
}

// biome-ignore lint/suspicious/noExplicitAny: the JSON of all commands
const json = async (line: string, how?: How): Promise<any> => JSON.parse(await says(`${line} --json`, how))

/** The code and the error of a command that must fail. */
async function fails(line: string, how?: How): Promise<string> {
  const { code, stdout, stderr } = await run(line, how)
  expect([line, code === 0, stdout]).toEqual([line, false, ''])
  return stderr
}

// biome-ignore lint/suspicious/noExplicitAny: the data of all calls
type Data = any

/** Looks at the hub itself, because a command for each look would cost a process. */
const untilHub = (path: string, body: object, isEnough: (data: Data) => unknown, what: string) =>
  until(
    async () => {
      const data = await hub.ok(hub.admin, path, body)
      if (isEnough(data)) return data
      await Bun.sleep(30)
      return undefined
    },
    what,
    30_000,
  )
const untilReview = async (): Promise<string> =>
  (await untilHub('reviews/list', { state: 'pending' }, data => data.total > 0, 'the review')).reviews[0].id

const exec = (run: string) => `agent: exec, commands: [{ name: c, run: ${JSON.stringify(run)} }]`
const team = (name: string, phases: string) =>
  files({ 'team.yml': `name: "@local/${name}"\nversion: 1.0.0\ndescription: It ${name}s.\n${phases}` })

const SAYS = team(
  'say',
  `inputs: [{ name: who, type: string, default: world }]
outputs: [{ name: said, value: "{{ phases.greet.data.commands[0].stdout }}" }]
phases:
  - { name: greet, agent: exec, commands: [{ name: hi, env: { WHO: "{{ inputs.who }}" }, run: 'printf "hello $WHO"' }] }
`,
)
const BREAKS = files({
  'team.yml': `name: "@local/break"
version: 1.0.0
phases:
  - { name: first, ${exec('echo ready')} }
  - { name: deep, type: team, team: ./inner, depends_on: [first] }
  - { name: after, ${exec('true')}, depends_on: [deep] }
`,
  'inner/team.yml': `name: "@local/inner"
version: 1.0.0
phases:
  - { name: soft, ${exec('exit 3')}, on_failure: continue }
  - { name: snap, ${exec('echo no such thing >&2; exit 4')}, depends_on: [soft] }
`,
})
const ASKS = team(
  'ask',
  `outputs: [{ name: answer, value: "{{ phases.gate.data.note == null ? phases.gate.data.answer : 'noted' }}" }]
phases:
  - name: gate
    type: gate
    review: { prompt: "Go on?", reviewers: [any], inputs: [{ name: answer, type: string, required: true }, { name: note }] }
`,
)
/** Its cleanup goes on until this file is there. */
const SWEPT = join(folder(), 'swept')
const SWEEPS = team(
  'sweep',
  `phases:
  - { name: soft, ${exec('exit 2')}, on_failure: continue }
  - { name: work, ${exec('exit 3')}, depends_on: [soft] }
  - { name: next, ${exec('true')}, depends_on: [work] }
  - { name: sweep, ${exec(`until [ -e ${SWEPT} ]; do sleep 0.05; done`)}, always: true, depends_on: [work] }
`,
)
const NAPS = team('nap', `phases:\n  - { name: nap, ${exec('sleep 30')} }\n`)

describe('before signing in', () => {
  test('a command says how to sign in, or that the hub is not known or away', async () => {
    expect(await fails('realms')).toContain('give --hub, set CADRE_HUB_URL, or sign in')
    expect(await fails(`realms --hub ${hub.url}`)).toMatch(/not signed in .*login NAME --hub http/)
    expect(await fails('runs --hub')).toContain('sign in')
    expect(await fails('runs --state crashed')).toContain('with --hub only')
    const away = await run('realms --hub http://127.0.0.1:1', { env: { CADRE_API_KEY: 'cadre_tok_x' } })
    expect([away.code, away.stderr]).toEqual([1, expect.stringContaining('does not answer')])
    const dead = await fails(`realms --hub ${hub.url}`, { env: { CADRE_API_KEY: `cadre_tok_${'x'.repeat(43)}` } })
    expect(dead).toMatch(/the credential is CADRE_API_KEY: unset it and sign in with/)
  })

  test('`status` works without a daemon, a hub and anything that ran', async () => {
    const found = await json('status')
    expect(found).toMatchObject({ home: admin, daemon: null, hub: null, signed_in: null, problems: [] })
    expect(await says('status')).toMatch(/^daemon +not running; to start it: (?:bun \S*daemon\.ts|\S*cadre) serve$/m)
  })
})

describe('people and places', () => {
  test('an org, a scope and a realm are created, listed by pages and shown', async () => {
    await says(`login admin --hub ${hub.url}`, { stdin: `${ADMIN_PASSWORD}\n` })
    // The only realm need not be named.
    expect(await says('realm-token')).toMatch(/^cadre_dt_\S+\n$/)
    expect(await fails('dispatch @admin/none')).toContain('there is no published team @admin/none')
    expect(await tells('orgs create acme --name Acme')).toMatch(
      /^created org acme; next: .* realms create REALM --org acme/,
    )
    expect(await json('scopes create acme --org acme')).toMatchObject({ slug: 'acme', my_role: 'owned' })
    expect(await tells('realms create prod --org acme --name Production')).toContain('realm-token prod | ')
    const { orgs } = await json('orgs')
    expect(orgs.map((org: { slug: string }) => org.slug)).toEqual(['acme', 'admin'])
    const first = await run('realms list --limit 1')
    expect(first.stdout).toMatch(/^admin +\S+ +you: admin +[0-9a-f-]{36}\n$/)
    expect(first.stderr).toMatch(/^1 more: (?:bun \S*daemon\.ts|\S*cadre) realms list --limit 1 --offset 1\n$/)
    expect(await json('realms --offset 1')).toMatchObject({ realms: [{ slug: 'prod', name: 'Production' }], total: 2 })
    const shown = await says('realms show Production')
    expect(shown).toMatch(/^prod\n/)
    expect(shown).toMatch(/^ {2}created +\S+ ago$/m)
    expect(shown).toMatch(/^members\n {2}admin {2}admin$/m)
    expect(await says('orgs show acme')).toMatch(/^scopes\n {2}@acme +0 teams +1 members$/m)
    expect(await says('scopes show @acme')).toMatch(/^ {2}your role +owned$/m)
    expect(await says('orgs keys acme')).toMatch(/current, since [\s\S]*BEGIN PUBLIC KEY/)
  })

  test('names that nobody has, or that several have, are told with those that there are', async () => {
    expect(await fails('realms show staging')).toMatch(/there is no realm staging .*; there is admin \(.*\), prod \(/)
    expect(await fails('members')).toMatch(/which realm\? There are admin \(.*\), prod \(/)
    expect(await fails('realm-token')).toMatch(/which realm\? There are admin \(.*\), prod \(/)
    expect(await fails('dispatch @acme/say')).toMatch(/which realm\? There are admin \(.*\), prod \(/)
    expect(await fails('scopes create other')).toContain('which org? There are acme, admin')
    expect(await fails('realms prod')).toContain('(did you mean `realms show prod`?)')
    expect(await fails('realms shw prod')).toContain('(did you mean `show`?)')
    expect(await fails('members --realm prod --org acme')).toContain('give one of --realm, --org and --scope')
  })

  test('somebody is invited, joins with a new account, and gets another role', async () => {
    const made = await run('invite create --realm prod --user bob')
    expect(made.stdout).toMatch(/^cadre_inv_\S+\n$/)
    expect(made.stderr).toMatch(/shown once: an invitation to be member of prod; it ends in (13d 23h|14d)\n/)
    expect(made.stderr).toContain(`invite accept --hub ${hub.url} --username bob`)
    const { id, token } = await json('invite create --realm prod')
    expect(await says('invite list --realm prod')).toMatch(/^anyone +member +by admin +ends in /m)
    expect(await tells(`invite revoke ${id.slice(0, 8)} --realm prod`)).toContain(id)
    expect((await json('invite list --realm prod')).total).toBe(1)
    const accept = `invite accept --username bob --hub ${hub.url}`
    expect(await fails(accept, { home: bob, stdin: `${token}\n${PASSWORD}\n` })).toContain('revoked')
    const joined = await tells(accept, { home: bob, stdin: `${made.stdout}${PASSWORD}\n` })
    expect(joined).toMatch(/^bob is member of realm .*\nsign in: .* login bob --hub http/)
    await says(`login bob --hub ${hub.url}`, { home: bob, stdin: `${PASSWORD}\n` })
    expect(await says('members', { home: bob })).toMatch(/^admin +admin +\d+\nbob +member +\d+\n$/)
    expect(await fails('members role admin member --realm acme/prod', { home: bob })).toContain('this call takes admin')
    expect(await fails('members add bob --realm prod --role owner')).toContain('the roles member, operator and admin')
    expect(await tells('members role bob operator --realm prod')).toBe('bob is operator of realm prod\n')
    expect(await tells('members add bob --scope acme')).toBe('bob is member of scope @acme\n')
    expect((await json('members --org acme')).members).toMatchObject([{ username: 'admin' }, { username: 'bob' }])
    expect(await fails('members remove bob --scope acme')).toContain('Add --yes to say so.')
    expect(await tells('members remove bob --scope acme --yes')).toContain('does not belong to scope @acme any more')
    expect(await tells('members role bob member --realm prod')).toContain('member')
  })

  test('a token has what it was given, and its secret is shown once', async () => {
    expect(await fails('tokens create x --allow runs:look --realm prod')).toContain('expected WHAT:LEVEL')
    expect(await fails('tokens create x --allow runs:read')).toContain('where may the token do this (runs)?')
    expect(await fails('tokens create x --realm prod')).toContain('what may the token do there?')
    const made = await run('tokens create reader --allow runs:read,realms:read --realm prod --days 30')
    expect([made.code, made.stderr]).toEqual([
      0,
      expect.stringMatching(/shown once: token \d+, reader; it ends in 29d|in 30d/),
    ])
    const env = { CADRE_HUB_URL: hub.url, CADRE_API_KEY: made.stdout.trim() }
    const reader = { home: folder(), env }
    expect(await json('runs --hub', reader)).toEqual({ runs: [], total: 0 })
    const refused = await fails('dispatch @acme/say --realm prod', reader)
    expect(refused).toMatch(/lacks runs:write or dispatch:write; the credential is CADRE_API_KEY: mint a token/)
    const { tokens } = await json('tokens')
    const { id } = tokens.find((token: { name: string }) => token.name === 'reader')
    const shown = await says('tokens')
    expect(shown).toMatch(
      new RegExp(`^${id} +reader +user token +ends in \\S+ .*runs:read realms:read in realm [0-9a-f]{8} `, 'm'),
    )
    expect(shown).not.toContain(made.stdout.trim())
    expect(await fails(`tokens revoke ${id}`)).toContain('--yes')
    const renewed = (await says(`tokens rotate ${id} --yes`)).trim()
    expect(await fails('runs --hub', reader)).toContain('the credential is CADRE_API_KEY')
    expect(await tells('runs --hub', { ...reader, env: { ...env, CADRE_API_KEY: renewed } })).toBe('none\n')
    expect(await tells(`tokens revoke ${id} --yes`)).toBe(`revoked token ${id}, reader\n`)
    expect(await says('tokens')).toMatch(new RegExp(`^${id} +reader .*revoked \\S+ ago`, 'm'))
    expect(await fails('tokens revoke reader --yes')).toContain('the number of a token')
  })
})

describe('teams and daemons', () => {
  test('teams are published, found, listed in a realm, and hidden', async () => {
    for (const path of [SAYS, BREAKS, ASKS, NAPS, SWEEPS]) await says(`publish ${path} --scope acme --realm prod`)
    expect(await says('teams --scope @acme --search sAY')).toMatch(/^@acme\/say +1\.0\.0 +It says\. +\S+ ago\n$/)
    expect(await says('teams show @acme/say')).toMatch(/^inputs\n {2}who +string$/m)
    expect(await says('teams versions @acme/say')).toMatch(/^1\.0\.0 +\S+ ago +\S+ B +not signed +[0-9a-f]{12}\n$/)
    expect(await fails('teams show @acme/none')).toContain('no team @acme/none')
    expect(await tells('realms remove-team prod @acme/nap')).toContain('do not run @acme/nap any more')
    const refused = await fails('dispatch @acme/nap@1.0.0 --realm prod')
    expect(refused).toMatch(
      /@acme\/nap is not on the team list .* with `(?:bun )?\S+ realms add-team prod @acme\/nap`, as /,
    )
    expect(await tells('realms add-team prod @acme/nap')).toContain('dispatch @acme/nap --realm prod')
    const extra = team('extra', `phases:\n  - { name: a, ${exec('true')} }\n`)
    await says(`publish ${extra} --scope acme`)
    expect(await tells('teams yank @acme/extra@1.0.0 --yes')).toContain('hid @acme/extra@1.0.0')
    expect((await json('teams versions @acme/extra')).total).toBe(0)
  })

  test('a daemon that a member enrols waits for approval; a job says so, and can be cancelled', async () => {
    const home = openHome()
    const token = await says('realm-token prod', { home: bob })
    await says(`enrol --hub ${hub.url}`, { home, stdin: token })
    daemon = await spawnDaemon({ home, env: { CADRE_DAEMON_NAME: 'desk' } })
    expect(await says('daemons --realm prod')).toMatch(/^! desk +online, waits for approval +\d+ slots +os=\S+/)
    const status = await json('status', { home })
    expect(status.daemon).toMatchObject({ pid: daemon.pid, command: 'serve', connected: true, slots: { used: 0 } })
    expect(status.hub).toMatchObject({ url: hub.url, enrolled: true, approved: false })
    expect(status.problems).toEqual([expect.stringMatching(/gets no jobs .* daemons approve [0-9a-f-]{36}$/)])

    expect(await says('dispatch @acme/say --realm prod')).toContain('waiting for daemon desk to be approved')
    const [job] = (await json('queue --realm prod')).jobs
    expect(job).toMatchObject({ team: '@acme/say@1.0.0', state: 'waiting' })
    expect(await says('queue --realm prod')).toMatch(/^@acme\/say@1\.0\.0 +waits for daemon desk to be approved/)
    expect(await says('why last --hub')).toMatch(/^Run \S+ of @acme\/say waits for daemon desk to be approved/)
    expect(await tells('queue cancel last')).toBe(`run ${job.run_id}: cancelled\n`)
    expect(await tells('queue --realm prod')).toBe('none\n')

    expect(await fails('daemons approve desk', { home: bob })).toContain('this call takes operator or admin')
    expect(await fails('daemons approve tower')).toMatch(/there is no daemon tower .*; there is desk \(/)
    expect(await tells('daemons approve desk')).toBe('desk gets jobs now\n')
    expect(await tells('daemons pause desk')).toContain('takes no more runs')
    expect(await says('daemons')).toMatch(/^! desk +online, paused +/)
    expect(await tells('daemons unpause desk')).toContain('takes runs again')
    const shown = await json(`daemons show ${job.daemon_id ?? status.hub.daemon_id.slice(0, 10)}`)
    expect(shown).toMatchObject({ name: 'desk', labels: { os: process.platform } })
    const isAsked = ({ agents }: { agents: { name: string; doctor?: string }[] }) =>
      agents.find(({ name }) => name === 'exec')?.doctor === 'settings'
    await untilHub('daemons/get', { daemon_id: shown.id }, isAsked, 'the doctor')
    expect(await says('daemons show desk')).toMatch(/^ {2}· exec +\S+ +set up, no system was asked$/m)
    expect(await says('daemons doctor')).toMatch(/^exec +· desk$/m)
    expect((await json('daemons doctor')).agents.helpdesk).toEqual({ [shown.id]: 'unset' })
  })
})

describe('runs of the hub', () => {
  const here = () => ({ home: daemon.home })
  const withoutHints = (text: string) => text.replaceAll(/ +--hub$/gm, '').replaceAll(` --home ${daemon.home}`, '')

  test('`dispatch --wait` follows a run to its end, and every command shows it as its daemon does', async () => {
    const done = await run('dispatch @acme/say --realm prod -i who=ada --wait')
    expect([done.code, done.stdout]).toEqual([0, 'said  hello ada\n'])
    const id = /^([0-9a-f-]{36}) {2}queued/m.exec(done.stderr)![1]!
    expect(done.stderr).toMatch(new RegExp(`^completed .*${id}\\n.* show ${id} --hub\\n$`, 'm'))
    await untilHub('runs/logs', { run_id: id }, data => data.complete, 'the log')
    expect(await tells('logs last --hub')).toBe('the hub has the whole log\n')
    for (const line of [`tree ${id}`, 'runs --limit 1', `logs ${id}`]) {
      expect([line, await says(`${line} --hub`)]).toEqual([line, await says(line, here())])
    }
    const shown = await says(`show ${id.slice(0, 14)} --hub`)
    expect(shown.split('\n')).toEqual((await says(`show ${id}`, here())).split('\n'))
    const { realm_id, daemon_id, job_id, created_at, labels, ...record } = await json('show last --hub')
    expect(record).toEqual(await json('show last', here()))
    expect([realm_id, daemon_id, job_id, typeof created_at]).not.toContain(undefined)
    const { runs } = await json('runs --hub --team @acme/say --state completed --since 1h')
    expect(runs).toMatchObject([{ run_id: id, team: '@acme/say', outputs: { said: 'hello ada' } }])
    expect((await json('runs --hub --team say --state completed --since 1h')).runs).toEqual(runs)
    expect((await json('runs --hub --since 2100-01-01')).total).toBe(0)
    expect(await fails('runs --hub last')).toContain('Write `last --hub`')
  })

  test('a run that fails: its exit code, the leaf first, and the commands to go on', async () => {
    const { code, stderr } = await run('dispatch @acme/break --realm prod --wait')
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/ why \S+ --hub\n.* logs \S+ --hub\n.* resume \S+ --hub\n$/),
    ])
    const said = await says('why last --hub')
    const lines = said.trimEnd().split('\n')
    // Only the flags of the commands differ.
    expect(withoutHints(said)).toBe(withoutHints(await says('why last', here())))
    expect(lines[0]).toContain('failed after')
    expect(lines[0]).toContain('its phase snap (exec) failed: command c exited with code 4: no such thing')
    expect(lines).toContain('Failed and passed over: phase soft (command c exited with code 3).')
    expect(lines).toContain('Because of it phase after did not complete.')
    expect(lines.at(-1)).toMatch(/ resume \S+ --hub$/)
    expect((await json('why last --hub')).chain).toEqual((await json('why last', here())).chain)
    expect(await says('tree last --hub')).toBe(await says('tree last', here()))
    expect(await says('logs last --hub --failed')).toContain('no such thing')

    // It fails again, which shows that the order has arrived.
    const { runs } = await json('runs --hub --limit 1')
    expect(await tells('resume last --hub')).toMatch(/^its daemon gets the order: .* watch \S+ --hub\n$/)
    const failedAgain = (data: { attempt: number; state: string }) => data.attempt === 2 && data.state === 'failed'
    await untilHub('runs/get', { run_id: runs[0].run_id }, failedAgain, 'the second attempt')
    expect(await fails('resume last --hub --plan')).toContain('without --hub')
  })

  test('while cleanup goes on, a failure is told, and never as one that was tolerated', async () => {
    await says('dispatch @acme/sweep --realm prod')
    const [{ run_id }] = (await json('runs --hub --limit 1')).runs
    const isSweeping = ({ phases }: Data) =>
      phases.some(({ name, state }: Data) => name === 'sweep' && state === 'running')
    await untilHub('runs/phases', { run_id }, isSweeping, 'the cleanup')
    const why = (await says('why last --hub')).split('\n')
    expect(why).toContain(
      'Failed: phase soft (command c exited with code 2); phase work (command c exited with code 3).',
    )
    expect(why).toContain('Because of it phase next did not complete.')
    expect(await says('tree last --hub')).toMatch(
      /✗ soft +\S+ +exec {2}command c exited with code 2\n {2}✗ work +\S+ +exec {2}command c exited with code 3\n/,
    )
    writeFileSync(SWEPT, '')
    await untilHub('runs/get', { run_id }, ({ state }: Data) => state === 'failed', 'the end of the run')
  })

  test('a person is asked, and answers from elsewhere', async () => {
    const waiting = run('dispatch @acme/ask --realm prod --wait')
    const id = await untilReview()
    const text = await says('reviews --hub')
    expect(text).toMatch(
      /^gate +gate .*\n {2}of @acme\/ask\n {2}Go on\?\n {2}then no phase runs\n {2}answer +string, required\n {2}note +string\n {2}takes approve or reject\n.* decide \S+ --hub\n$/,
    )
    const local = await says('reviews', here())
    expect(text).toBe(local.replace(/(decide \S+)\n$/, '$1 --hub\n'))
    const watched = await run('watch last --hub')
    expect([watched.code, watched.stderr]).toEqual([
      3,
      expect.stringMatching(/Go on\? {2}gate\n.* decide \S+ --hub\n$/),
    ])
    expect(await says('why last --hub')).toContain(`decide ${id} --hub`)
    expect(await fails('decide last approve --hub')).toContain('answer')
    expect(await fails(`decide ${id.slice(0, 13)} maybe --hub`)).toContain('expected one of approve, reject')
    const decided = command(['decide', 'last', 'approve', '--values', '{"answer":"yes"}', '--hub'], { home: admin })
    expect(await decided).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^decided: approve gate\nits daemon gets the decision: .* watch \S+ --hub\n$/),
    })
    expect(await waiting).toMatchObject({ code: 0, stdout: 'answer  yes\n' })
    expect(await says('reviews --hub --all')).toContain('gate approve by admin')
  })

  test('a run is cancelled from elsewhere', async () => {
    await says('dispatch @acme/nap --realm prod')
    await untilHub('runs/list', { limit: 1 }, data => data.runs[0].state === 'running', 'the run')
    // It is watched over a bad network.
    const { token } = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'watcher' })
    await using front = startFront(hub.url)
    let lost = 0
    front.loses = ({ path }) => (path === '/v1/runs/stream' && lost++ === 0 ? 'request' : null)
    const watching = run(`watch last --hub ${front.url}`, { env: { CADRE_API_KEY: token } })
    await until(() => lost > 0, 'the watcher')
    expect(await says('status', here())).toMatch(/^slots +1 in use, \d+ free\nruns +1 running$/m)
    expect(await tells('cancel last --hub')).toMatch(/^cancelling; its daemon ends it: .* watch \S+ --hub\n$/)
    expect(await watching).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^a proxy before http\S+ answered 504.*; trying again\nthe hub is back\n[\s\S]*\ncancelled .*\n.*resume /,
      ),
    })
    expect(await fails('cancel last --hub')).toContain('there is nothing to cancel')
    expect(await fails('watch ffffff --hub')).toContain('no run begins with ffffff')
  })

  test('a run that no daemon may take is cancelled, and nothing is offered that is then refused', async () => {
    await says('dispatch @acme/nap --realm prod --workspace nowhere')
    expect(await tells('cancel last --hub')).toBe('cancelled before a daemon took it; dispatch it again\n')
    const why = await says('why last --hub')
    expect(why).toContain('dispatch @acme/nap')
    expect(why).not.toContain('resume')
    expect((await run('watch last --hub')).stderr).not.toContain('resume')
  })

  test('`watch` goes on when the hub was away', async () => {
    const waiting = run('dispatch @acme/ask --realm prod --wait')
    const id = await untilReview()
    await hub.restart()
    const values = ['--values', '{"answer":"still"}']
    expect(await command(['decide', id, 'approve', ...values, '--hub'], { home: admin })).toMatchObject({ code: 0 })
    const { code, stdout } = await waiting
    expect([code, stdout]).toEqual([0, 'answer  still\n'])
  })

  test('`logs -f` goes on when the hub was away, and prints each line once', async () => {
    const done = join(folder(), 'done')
    const talks = team(
      'talk',
      `phases:\n  - { name: a, ${exec(`echo begun; until [ -e ${done} ]; do sleep 0.1; done`)} }\n`,
    )
    await says(`publish ${talks} --scope acme --realm prod`)
    const { run_id } = await json('dispatch @acme/talk --realm prod')
    const following = startCommand(['logs', run_id, '-f', '--hub'], { home: admin })
    const said = { stdout: '', stderr: '' }
    const ended = Promise.all([
      collect(following.stdout, text => (said.stdout += text)),
      collect(following.stderr, text => (said.stderr += text)),
    ])
    await until(() => said.stdout.includes('begun'), 'the first line')
    await hub.restart({}, () => until(() => said.stderr.includes('trying again'), 'the outage'))
    writeFileSync(done, '')
    const [code] = await Promise.all([following.exited, ended])
    expect([code, said.stderr]).toEqual([
      0,
      expect.stringMatching(/does not answer.*; trying again\nthe hub is back\nthe hub has the whole log\n$/),
    ])
    expect(said.stdout.match(/begun/g)).toHaveLength(1)
  })
})

describe('afterwards', () => {
  test('a daemon whose clock is wrong is told as such, by hubs that know', async () => {
    const { daemons, total } = await hub.ok(hub.admin, 'daemons/list')
    let clock_offset: number | null = 90_000
    using newer = Bun.serve({
      port: 0,
      fetch: () => Response.json({ ok: true, data: { daemons: [{ ...daemons[0], clock_offset }], total } }),
    })
    const told = () =>
      says(`daemons --hub ${newer.url.origin}`, { env: { CADRE_API_KEY: `cadre_tok_${'x'.repeat(43)}` } })
    expect(await told()).toMatch(/^● desk +online, clock 1m 30s ahead /)
    clock_offset = -2_000
    expect(await told()).toMatch(/^● desk +online {2}/)
  })

  test('the audit log says who did what, by action and time', async () => {
    const { audit, total } = await json('audit --org acme --action daemons/approve')
    expect([total, audit]).toMatchObject([1, [{ username: 'admin', action: 'daemons/approve' }]])
    expect(await says('audit --org acme --limit 3 --since 1h')).toMatch(/^\S+ ago +bob +daemons\/ack +done run job/)
    expect((await json('audit --until 2020-01-01')).total).toBe(0)
    expect(await json('audit', { home: bob })).toEqual({ audit: [], total: 0 })
    expect(await fails('audit --org acme', { home: bob })).toContain('this call takes admin or owner')
  })

  test('every command of docs/hub.md succeeds, in its order', async () => {
    const text = await Bun.file(join(ROOT, 'docs/hub.md')).text()
    const blocks = Array.from(text.matchAll(/^```console\n(.*?)^```$/gms), ([, block]) => block!)
    const lines = blocks.flatMap(block => block.trimEnd().split('\n'))
    expect(lines.length).toBeGreaterThan(15)
    const how = { home: folder(), stdin: `${ADMIN_PASSWORD}\n`, cwd: ROOT, env: { CADRE_HUB_URL: hub.url } }
    for (const line of lines) {
      const args = line.replace(/^\$ cadre /, '')
      expect(args).not.toBe(line)
      const { code, stderr } = await command(words(args), how)
      expect([line, code, stderr]).toEqual([line, 0, stderr])
    }
    const { runs } = await json('runs --hub --limit 1')
    expect(runs).toMatchObject([{ team: '@admin/repo-report', state: 'cancelled' }])
  })

  test('`status` of the daemon, while it runs and when it does not', async () => {
    const env = { CADRE_HUB_URL: hub.url }
    const found = await json('status', { home: daemon.home })
    expect(found).toMatchObject({ daemon: { connected: true }, runs: { running: 0, interrupted: 0 }, problems: [] })
    expect(found.hub).toMatchObject({ answers: true, approved: true, unsent: { changes: 0, lines: 0 } })
    const session = readFileSync(join(admin, 'session'), 'utf8')
    await Bun.write(join(daemon.home, 'session'), session)
    expect(await says('status', { home: daemon.home, env })).toMatch(/^realm +prod, as daemon [0-9a-f-]{36}$/m)
    expect(await says('status', { home: daemon.home, env })).toMatch(/^to stop it +kill \d+;/m)
    await daemon.stop()
    const text = await says('status', { home: daemon.home })
    expect(text).toMatch(/^daemon +not running/m)
    expect(text).toMatch(/^hub +\S+, it answers$/m)
    const away = await says('status --hub http://127.0.0.1:1', { home: daemon.home })
    expect(away).toMatch(/^! the hub at http:\/\/127\.0\.0\.1:1 does not answer/m)
  })

  test.skipIf(!hasTmux)(
    'a narrow window shows each item on lines of its own, and asks before something is lost',
    async () => {
      await using list = await Window.open(['daemons'], { home: admin, columns: 40, rows: 20 })
      const screen = await list.shows(/exit=0/)
      expect(screen).toMatch(/^[●○] desk\n {2}(online|stale)/)
      expect(Math.max(...screen.split('\n').map(line => line.length))).toBeLessThanOrEqual(40)
      await using remove = await Window.open(['daemons', 'remove', 'desk'], { home: admin, columns: 60, rows: 12 })
      await remove.shows(/Remove daemon desk\?[\s\S]*\(yes, no\):/)
      await remove.press('n', 'Enter')
      await remove.shows(/nothing was changed[\s\S]*exit=2/)
      expect((await json('daemons')).total).toBe(1)
    },
    60_000,
  )

  test.skipIf(!hasTmux)('secrets are typed without being shown', async () => {
    const { token } = await hub.ok(hub.admin, 'realms/invite', { realm_id: hub.realm })
    const accept = ['invite', 'accept', '--username', 'carol', '--hub', hub.url]
    await using window = await Window.open(accept, { home: folder(), columns: 100, rows: 12 })
    await window.shows(/^invitation:/)
    await window.press(`${token}x`, 'BSpace', 'Enter')
    await window.shows(/^password of the new account carol:/m)
    await window.press(PASSWORD, 'Enter')
    const screen = await window.shows(/carol is member of realm[\s\S]*exit=0/)
    expect(screen).not.toContain(token)
    expect(screen).not.toContain(PASSWORD)
  })

  test('what was created is deleted again', async () => {
    expect(await tells('daemons remove desk --yes')).toBe('removed daemon desk\n')
    expect(await fails('realms delete prod')).toContain('Add --yes')
    expect(await tells('realms delete prod --yes')).toBe('deleted realm prod\n')
    expect(await fails('scopes delete acme --yes')).toContain('has published teams')
    expect(await tells('orgs rotate-keys admin --yes')).toBe('')
    expect(await tells('orgs delete acme --yes')).toBe('deleted org acme\n')
    expect(await says('logout')).toContain('signed out of')
    expect(await fails(`realms --hub ${hub.url}`)).toContain('sign in with')
  })
})
