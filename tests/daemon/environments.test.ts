// Environments of settings.yml from the file to a run: which settings and secrets a run has, which environment a team
// allows, and what people see of it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

/** Says with which settings it was called, and waits until a file is there, if it is given one. */
const PLACE = `
import { existsSync } from 'node:fs'
import { agent, secret, Type } from 'cadre'
export default agent({
  type: 'connector', version: '1.0.0', description: 'Says where it is.',
  settings: Type.Object({ host: Type.String(), user: Type.Optional(Type.String()), token: secret() }),
  actions: {
    say: {
      direction: 'source', effect: 'read',
      entry: Type.Object({ name: Type.String(), wait: Type.Optional(Type.String()) }),
      async run({ wait }, { settings: { host, user = '', token } }) {
        if (wait && !existsSync(wait)) throw new Error('nothing is there yet')
        return { text: [host, user, Bun.hash(token)].join(' ') }
      },
    },
  },
})
`
const tokens = { plain: 'canary-of-plain', staging: 'canary-of-staging', production: 'canary-of-production' }
const SETTINGS = {
  agents: { place: { host: 'plain.test', user: 'me', token: tokens.plain } },
  secrets: { db: 'canary-db-of-plain', shared: 'canary-shared' },
  environments: {
    staging: {
      agents: { place: { host: 'staging.test', token: '${env:STAGING_TOKEN}' } },
      secrets: { db: 'canary-db-of-staging' },
      inherit: true,
    },
    production: {
      agents: { place: { host: 'production.test', token: tokens.production } },
      secrets: { db: { value: 'canary-db-of-production', teams: ['@acme/*'] } },
    },
    broken: { agents: { place: { host: 'broken.test', token: '${env:NOBODY_SETS_THIS}' } }, inherit: true },
    misspelt: { inherti: true },
  },
}
const phase = (wait = '') =>
  `{ name: say, agent: place, action: say, sources: [{ name: a${wait && `, wait: ${wait}`}}] }`
const SHOW =
  '{ name: show, agent: exec, env: { DB: "{{ secrets.db }}" }, commands: [{ name: c, run: \'printf "%s" "$DB" | wc -c > "$CADRE_RESULT"\' }] }'
const team = (more: string, ...phases: string[]) =>
  `name: "@local/deploy"\nversion: 1.0.0\n${more}\nphases:\n${phases.map(each => `  - ${each}\n`).join('')}`
const CHOOSES = 'environments: { allow: [staging, production] }'

let daemon: RunningDaemon
let path: string
beforeAll(async () => {
  const home = folder()
  mkdirSync(join(home, 'agents'), { recursive: true })
  writeFileSync(join(home, 'agents/place.ts'), PLACE)
  writeFileSync(join(home, 'settings.yml'), JSON.stringify(SETTINGS), { mode: 0o600 })
  path = files({ 'team.yml': team('', phase(), SHOW) })
  daemon = await spawnDaemon({ home, env: { STAGING_TOKEN: tokens.staging } })
}, 30_000)
afterAll(() => daemon.stop())

const start = async (body: object) => (await daemon.call('/v1/runs/start', { path, ...body })).run_id as string
const refused = async (body: object) => {
  const { status, body: reply } = await daemon.post('/v1/runs/start', { path, ...body })
  expect(status).toBe(400)
  return [reply.error.message, ...(reply.error.details ?? []).map((each: { message: string }) => each.message)].join(
    '\n',
  )
}
const result = async (runId: string) => {
  const { state, error, environment } = await daemon.ended(runId)
  const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id: runId })
  const [said, shown] = phases.map((each: { text: string; data: unknown }) => [each.text, each.data])
  return { state, error, environment, said: said?.[0], db: shown?.[1] }
}
const saying = (host: string, user: string, token: string) => [host, user, Bun.hash(token)].join(' ')

test('a run has the settings and secrets of its environment, and its record says which', async () => {
  const [plain, staging] = [await result(await start({})), await result(await start({ environment: 'staging' }))]
  expect(plain).toMatchObject({ state: 'completed', environment: null, db: 'canary-db-of-plain'.length })
  expect(plain.said).toBe(saying('plain.test', 'me', tokens.plain))
  expect(staging).toMatchObject({ state: 'completed', environment: 'staging', db: 'canary-db-of-staging'.length })
  expect(staging.said).toBe(saying('staging.test', 'me', tokens.staging))
  const production = await result(await start({ environment: 'production' }))
  expect(production.said).toBe(saying('production.test', '', tokens.production))
  expect(production.db).toBe('canary-db-of-production'.length)
  const { runs } = await daemon.call('/v1/runs/list', {})
  expect(runs.map((run: { environment: string }) => run.environment)).toEqual(['production', 'staging', null])
})

test('what an environment lacks is missing, and is never taken from elsewhere by accident', async () => {
  expect(await refused({ environment: 'stagin' })).toContain(
    'there is no environment stagin in settings.yml of this machine: it has staging, production, broken and misspelt (did you mean `staging`?)',
  )
  expect(await refused({ environment: 'broken' })).toContain(
    'environments.broken.agents.place.token: the environment variable NOBODY_SETS_THIS is not set',
  )
  expect(await refused({ environment: 'misspelt' })).toContain('environments.misspelt.inherti in settings.yml')
  const shared = files({ 'team.yml': team('', SHOW.replace('secrets.db', 'secrets.shared')) })
  expect(await refused({ path: shared, environment: 'production' })).toContain(
    'the secret shared is not set in environments.production; add `shared: …` below `environments.production.secrets:`',
  )
  expect((await result(await start({ path: shared, environment: 'staging' }))).state).toBe('completed')
})

test('secrets of an environment are masked wherever they could be seen', async () => {
  const prints = SHOW.replace('| wc -c > "$CADRE_RESULT"', '')
  const run_id = await start({
    path: files({ 'team.yml': team('', prints.replace('printf', 'echo "$DB"; printf'), phase()) }),
    environment: 'staging',
  })
  expect((await daemon.ended(run_id)).state).toBe('completed')
  const shown = JSON.stringify([
    await daemon.call('/v1/runs/logs', { run_id }),
    await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id }),
    daemon.output,
  ])
  expect(shown).toContain('***')
  expect(shown).not.toContain('canary-db')
})

test('a team says in which environments it runs, and so do the teams below it', async () => {
  const [open, usual] = ['', ', default: staging'].map(more =>
    files({ 'team.yml': team(`environments: { allow: [staging, production]${more} }`, phase()) }),
  )
  expect(await refused({ path: open! })).toContain(
    '@local/deploy runs only in an environment, staging and production: say which, as with --env staging',
  )
  expect(await refused({ path: open!, environment: 'broken' })).toContain(
    '@local/deploy does not run in the environment broken: it allows staging and production',
  )
  expect((await result(await start({ path: usual! }))).environment).toBe('staging')
  const above = files({
    'team.yml': `name: "@local/above"\nversion: 1.0.0\nphases:\n  - { name: below, type: team, team: ./below }\n`,
    'below/team.yml': team(CHOOSES, phase()),
  })
  expect(await refused({ path: above })).toContain('@local/deploy runs only in an environment')
  const { run_id } = await daemon.call('/v1/runs/start', { path: above, environment: 'production' })
  expect((await daemon.ended(run_id)).state).toBe('completed')
  const { runs } = await daemon.call('/v1/runs/list', { team: '@local/deploy' })
  expect(runs[0]).toMatchObject({ parent_run_id: run_id, environment: 'production' })
  const wrong = files({ 'team.yml': team('environments: { allow: [staging], default: stagin }', phase()) })
  expect(await refused({ path: wrong })).toContain('stagin is not one of `allow`: staging (did you mean `staging`?)')
})

test('a resume keeps the environment', async () => {
  const flag = join(folder(), 'there')
  const waits = files({ 'team.yml': team(CHOOSES, phase(flag)) })
  const run_id = await start({ path: waits, environment: 'production' })
  expect((await result(run_id)).state).toBe('failed')
  writeFileSync(flag, '')
  await daemon.call('/v1/runs/resume', { run_id })
  expect(await result(run_id)).toMatchObject({
    ...{ state: 'completed', environment: 'production' },
    said: saying('production.test', '', tokens.production),
  })
})

const triggers = (call: string, body: object) =>
  daemon.call(`/v1/triggers/${call}`, body, { authorization: `Bearer ${daemon.token}` })

test('a trigger has an environment at each firing, from a call or from its team', async () => {
  const runNow = async (trigger_id: string) => {
    const { run_id } = await triggers('run_now', { trigger_id })
    return (await daemon.ended(run_id)).environment
  }
  const schedule = { kind: 'schedule', name: 'nightly', team: path, every: '90m', environment: 'staging' }
  const added = await triggers('add', schedule)
  expect([added.environment, await runNow(added.id)]).toEqual(['staging', 'staging'])
  await triggers('update', { trigger_id: added.id, environment: 'production' })
  expect(await runNow(added.id)).toBe('production')
  await triggers('update', { trigger_id: added.id, environment: null })
  expect(await runNow(added.id)).toBeNull()
  const declaring = files({
    'team.yml': team(
      `triggers:\n  - { name: hourly, schedule: { every: 60m }, environment: production }\n${CHOOSES}`,
      phase(),
    ),
  })
  const enabled = await triggers('enable', { team: declaring, name: 'hourly' })
  expect([enabled.environment, await runNow(enabled.id)]).toEqual(['production', 'production'])
  const lacking = await triggers('add', { ...schedule, name: 'lacking', environment: 'nowhere' })
  expect(lacking.warnings).toContainEqual(
    expect.stringContaining('no run can start yet: there is no environment nowhere'),
  )
})

test('expressions and concurrency keys can name the environment', async () => {
  const wait = '{ name: ask, type: gate, review: { prompt: "Go on in {{ run.environment }}?" } }'
  const below = files({
    'team.yml': team(
      'concurrency: { key: "deploy-{{ run.environment }}" }',
      wait,
      '{ name: down, type: team, team: ./down }',
    ),
    'down/team.yml': team(
      '',
      '{ name: x, agent: exec, when: run.environment == "staging", commands: [{ name: c, run: "true" }] }',
    ),
  })
  const first = await start({ path: below, environment: 'staging' })
  const other = await start({ path: below, environment: 'production' })
  const second = await start({ path: below, environment: 'staging' })
  const stateOf = async (run_id: string) => (await daemon.call('/v1/runs/get', { run_id })).state
  const asks = async (run_id: string) => {
    await until(async () => (await stateOf(run_id)) === 'awaiting_input', 'the run asks')
    const { reviews } = await daemon.call('/v1/reviews/list', { run_id })
    return reviews[0] as { id: string; prompt: string }
  }
  const review = await asks(first)
  expect(review.prompt).toBe('Go on in staging?')
  expect((await asks(other)).prompt).toBe('Go on in production?')
  expect(await stateOf(second)).toBe('queued')
  expect((await daemon.call('/v1/runs/get', { run_id: second })).reason).toBe('waits for the key deploy-staging')
  await daemon.call('/v1/runs/cancel', { run_id: other })
  await daemon.call('/v1/runs/cancel', { run_id: second })
  await daemon.call(
    '/v1/reviews/decide',
    { review_id: review.id, decision: 'approve' },
    { authorization: `Bearer ${daemon.token}` },
  )
  expect((await daemon.ended(first)).state).toBe('completed')
  const plan = await command(['plan', below, '--env', 'production', '--json'], { home: daemon.home })
  expect(JSON.parse(plan.stdout).concurrency.key).toBe('deploy-production')
})

test('commands: run, show, plan, and what settings accept, mask and refuse', async () => {
  const { home } = daemon
  const ran = await command(['run', path, '--env', 'staging', '--detach', '--json'], { home })
  const { run_id } = JSON.parse(ran.stdout)
  await daemon.ended(run_id)
  expect((await command(['show', run_id], { home })).stdout).toMatch(/environment +staging/)
  // Lists and trees name it where there is one, and say nothing else of runs without.
  const list = async () => (await command(['runs', '--all', '--limit', '100'], { home })).stdout.split('\n')
  const lineOf = async (id: string) => (await list()).find(each => each.includes(id))
  const plain = (await daemon.call('/v1/runs/start', { path: files({ 'team.yml': team('', phase()) }) })).run_id
  await daemon.ended(plain)
  expect(await lineOf(run_id)).toMatch(/@local\/deploy in staging +\S/)
  expect(await lineOf(plain)).toMatch(/@local\/deploy +\d/)
  const head = async (id: string) => (await command(['tree', id], { home })).stdout.split('\n')[0]
  expect(await head(run_id)).toMatch(/@local\/deploy in staging +\S/)
  expect(await head(plain)).toMatch(/@local\/deploy +\d/)
  const unknown = await command(['run', path, '--env', 'nowhere'], { home })
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('there is no environment nowhere')])
  expect((await command(['plan', path, '--env', 'production'], { home })).stdout).toContain('production')

  const set = (key: string, value: string) => command(['settings', 'set', key, value], { home })
  expect((await set('environments.qa.agents.place.host', 'qa.test')).code).toBe(0)
  expect((await set('environments.qa.secrets.db', '{"value":"canary-db-of-qa","teams":["@acme/*"]}')).code).toBe(0)
  expect((await set('environments.qa.secrets.db', 'canary-other')).code).toBe(0)
  expect((await set('environments.qa.inherit', 'true')).code).toBe(0)
  const listed = (await command(['settings', 'list'], { home })).stdout
  expect(listed).toMatch(/environments\.qa\.agents\.place\.host +qa\.test/)
  expect(listed).toMatch(/environments\.qa\.secrets\.db\.value +\*\*\*/)
  expect(listed).toMatch(/environments\.qa\.secrets\.db\.teams +\["@acme\/\*"\]/)
  expect(listed).toMatch(/environments\.production\.agents\.place\.token +\*\*\*/)
  expect(listed).not.toContain('canary')
  for (const [key, value, text] of [
    ['environments.qa.inherit', 'maybe', 'expected true or false'],
    ['environments.qa.agents.plce.host', 'x', 'there is no agent plce (did you mean `place`?)'],
    ['environments.qa.agents.place.hots', 'x', 'did you mean `host`?'],
    ['environments.qa.network.allow', '10.0.0.0/8', 'an environment has agents, secrets, inherit and review'],
    ['environments.QA.inherit', 'true', 'the name of an environment must consist of small letters'],
  ] as const) {
    const { code, stderr } = await set(key, value)
    expect([code, stderr]).toEqual([2, expect.stringContaining(text)])
  }
  const schedule = ['schedules', 'add', path, '--every', '90m', '--name', 'by-command', '--env', 'staging']
  expect((await command(schedule, { home })).code).toBe(0)
  expect((await command(['triggers', 'show', 'by-command'], { home })).stdout).toMatch(/environment +staging/)
  const said = (await command(['doctor'], { home })).stdout
  expect(said).toMatch(/place in broken +environments\.broken\.agents\.place\.token: .*NOBODY_SETS_THIS is not set/)
  expect(said).toMatch(/environments\.misspelt\.inherti +an environment has agents, secrets, inherit and review/)
}, 120_000)
