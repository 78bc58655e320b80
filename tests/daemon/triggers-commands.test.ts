// The commands of triggers, on real homes: with a daemon, without one, and before anything has run.

import { describe, expect, test } from 'bun:test'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const IDLE = 'no daemon runs, so no trigger starts anything'
const TEAM = `name: "@local/nightly-digest"
version: 1.0.0
inputs:
  - { name: day, type: string, default: none }
  - { name: times, type: number, default: 1 }
  - { name: names, type: list, default: [] }
  - { name: password, type: string, secret: true }
phases:
  - { name: say, agent: exec, commands: [{ name: c, env: { DAY: "{{ inputs.day }}" }, run: 'echo "$DAY"' }] }
`
const SLOW = `name: "@local/slow"
version: 1.0.0
phases: [{ name: wait, agent: exec, commands: [{ name: c, run: 'sleep 60' }] }]
`
const CRON = ['--cron', '0 6 * * 1-5', '--tz', 'Europe/Berlin']

/** A home, a folder of a team, and the command line that works on them. */
function place(team = TEAM) {
  const home = folder()
  const cwd = files({ 'digest/team.yml': team })
  const cadre = (...args: string[]) => command(args, { home, cwd })
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await cadre(...args, '--json')
    expect([args, code, code === 0 ? '' : stderr]).toEqual([args, 0, ''])
    return JSON.parse(stdout)
  }
  return { home, cwd, cadre, json }
}

describe('without a daemon', () => {
  test('a home in which nothing has run has no triggers', async () => {
    const { cadre, home } = place()
    for (const list of ['triggers', 'schedules']) {
      const { code, stdout, stderr } = await cadre(list)
      expect([code, stdout]).toEqual([0, ''])
      expect(stderr).toStartWith(`none\n${IDLE}\n`)
    }
    expect(await cadre('triggers', 'show', 'nightly')).toMatchObject({ code: 2, stdout: '' })
    const why = await cadre('why', 'nightly')
    expect([why.code, why.stderr]).toEqual([2, `error  nothing has run in ${home} yet, and no trigger nightly\n`])
  })

  test('the plan of a team says what starts it', async () => {
    const { cadre, json } = place()
    expect((await cadre('plan', 'digest')).stdout).not.toContain('started by')
    await json('schedules', 'add', 'digest', ...CRON)
    for (const team of ['digest', './digest/', 'digest/team.yml']) {
      const { stdout } = await cadre('plan', team)
      expect(stdout).toMatch(/\nstarted by\n {2}nightly-digest +active +at 06:00, Monday to Friday, Europe\/Berlin\n/)
    }
  })

  test('add says when it starts, in words, local times and UTC', async () => {
    const { cadre } = place()
    const { code, stdout, stderr } = await cadre('schedules', 'add', 'digest', ...CRON)
    expect(code).toBe(0)
    const [words, ...next] = stdout.trimEnd().split('\n')
    expect(words).toBe('nightly-digest  active  at 06:00, Monday to Friday, Europe/Berlin')
    expect(next).toHaveLength(5)
    for (const slot of next) expect(slot).toMatch(/T06:00\+0[12]:00 {2}\d{4}-\d\d-\d\dT0[45]:00Z$/)
    expect(stderr).toStartWith(`${IDLE}\n`)
    expect(stderr).toContain('nobody is told when a run fails, unless the team tells people itself\n')
    await cadre('settings', 'set', 'agents.chat.channels.ops', 'https://hooks.example.com/x')
    await cadre('settings', 'set', 'notify.on_fail', '["chat:ops"]')
    const inGap = await cadre('schedules', 'add', 'digest', '--cron', '30 2 * * *', '--tz', 'Europe/Berlin')
    expect(inGap.stderr).not.toContain('nobody is told')
    expect(inGap.stdout).toStartWith('nightly-digest-2  active')
    expect(inGap.stdout).toMatch(/\nnote {2}02:30 does not exist on \d{4}-03-\d\d in Europe\/Berlin/)
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
    expect((await cadre('schedules', 'add', 'digest', '--cron', '@daily')).stdout).toContain(zone)
    const { stdout: list } = await cadre('triggers', '--kind', 'schedule')
    expect(list.split('\n').map(line => line.split(' ')[0])).toEqual([
      'nightly-digest',
      'nightly-digest-2',
      'nightly-digest-3',
      '',
    ])
    expect(list).toMatch(/^nightly-digest {4}active {2}at 06:00, .* {2}\d{4}-\S+ {2}never$/m)
    const twin = await cadre('schedules', 'add', 'digest', ...CRON, '--name', 'twin')
    expect(twin.stderr).toStartWith('warning  nightly-digest starts this team on the same occasions, too')
  })

  const wrong = place()
  test.each([
    [['--cron', '*/15 * * * * *'], 'seconds are not supported'],
    [['--cron', '0 0 30 2 *'], 'there is no such day'],
    [['--cron', '0 6 * * *', '--tz', 'EST'], 'EST'],
    [['--every', '90s'], 'must be whole minutes'],
    [[], 'is required'],
    [['--every', '5m', '--cron', '@daily'], 'keep one of them'],
    [['--every', '5m', '--at-most', 'often'], 'Expected how many start within how long'],
    [['--every', '5m', '--catch-up', 'all'], 'overlap: queue'],
    [['--every', '5m', '-i', 'times=many'], '-i times: expected a number'],
    [['--every', '5m', '-i', 'tims=1'], 'did you mean'],
    [['--every', '5m', '-i', 'password=hush'], 'is secret'],
    [['--every', '5m', '-i', 'day={{ nosuch }}'], 'nosuch'],
    [['--every', '5m', '--when', 'slot =='], 'when'],
  ])('add with %j exits 2 and says what is wrong', async (args, told) => {
    const { code, stdout, stderr } = await wrong.cadre('schedules', 'add', 'digest', ...args)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(told)
  })

  test('what was refused was not added', async () => {
    expect((await wrong.cadre('triggers')).stdout).toBe('')
  })

  test('inputs are templates, or values of the declared type', async () => {
    const { json, cadre } = place()
    const given = ['-i', 'day={{ slot }}', '-i', 'times=3', '-i', 'names=["{{ slot }}","b"]']
    const added = await json('schedules', 'add', 'digest', '--every', '90m', ...given)
    expect(added.inputs).toEqual({ day: '{{ slot }}', times: 3, names: ['{{ slot }}', 'b'] })
    const options = [
      '--at-most',
      '3/1h',
      '--when',
      'slot != ""',
      '--overlap',
      'queue',
      '--queue-max',
      '2',
      '--jitter',
      '5m',
    ]
    const changed = await json('schedules', 'update', 'nightly-digest', '-i', 'times=4', ...options)
    expect(changed).toMatchObject({
      inputs: { day: '{{ slot }}', times: 4, names: ['{{ slot }}', 'b'] },
      ...{ when: 'slot != ""', overlap: 'queue', queue_max: 2, jitter: '5m', at_most: { count: 3, per: '1h' } },
      ...{ revision: 2, every: '90m' },
    })
    const less = ['--when', '', '--at-most', '', '--name', 'digest']
    const renamed = await json('triggers', 'update', 'nightly-digest', ...less)
    expect(renamed).toMatchObject({ name: 'digest', when: null, at_most: null, overlap: 'queue', id: added.id })
    expect(await cadre('triggers', 'update', 'digest')).toMatchObject({ code: 2, stdout: '' })
    const taken = await cadre('schedules', 'add', 'digest', '--every', '5m', '--name', 'digest')
    expect([taken.code, taken.stderr]).toEqual([2, expect.stringContaining('has a trigger digest already')])
  })

  test('pausing, disabling and removing; why says the newest reason first', async () => {
    const { cadre, json } = place()
    await json('schedules', 'add', 'digest', ...CRON, '--name', 'nightly')
    expect(await json('triggers', 'pause', 'nightly', '--reason', 'moving house')).toMatchObject({ state: 'paused' })
    const paused = (await cadre('why', 'nightly')).stdout.split('\n')
    expect(paused[0]).toMatch(/^nightly is paused since .* by local:.*: moving house$/)
    expect(paused[1]).toBe(IDLE)
    expect(paused.join('\n')).toMatch(/ triggers resume nightly\n/)
    const { stdout: shown } = await cadre('triggers', 'show', 'nightly')
    expect(shown).toContain('moving house')
    expect(shown).toMatch(/^ {2}works in +\/\S+\/digest$/m)
    expect(await json('triggers', 'resume', 'nightly')).toMatchObject({ state: 'active', paused: null })
    expect(await json('triggers', 'disable', 'nightly')).toMatchObject({ state: 'disabled', next: [] })
    expect((await cadre('why', 'nightly')).stdout).toStartWith('nightly is disabled')
    expect(await json('triggers', 'enable', 'nightly')).toMatchObject({ state: 'active' })
    expect((await cadre('why', 'nightly')).stdout).toContain('nightly has had no occasion yet: at 06:00')
    expect(await cadre('triggers', 'remove', 'nightly')).toEqual({ code: 0, stdout: 'removed nightly\n', stderr: '' })
    expect(await cadre('triggers', 'show', 'nightly')).toMatchObject({ code: 2 })
  })

  test('preview has the slots that were asked for', async () => {
    const { cadre, json } = place()
    await json('schedules', 'add', 'digest', '--cron', '30 2 * * *', '--tz', 'Europe/Berlin', '--name', 'early')
    const asked = ['preview', 'early', '--after', '2027-03-27T12:00', '--limit', '2']
    const { slots, words } = await json('triggers', ...asked)
    expect(slots.map(({ local }: { local: string }) => local)).toEqual([
      '2027-03-28T03:00+02:00',
      '2027-03-29T02:30+02:00',
    ])
    expect((await cadre('triggers', ...asked)).stdout).toStartWith(`${words}\nnext  2027-03-28T03:00+02:00`)
  })

  test('run starts here and follows; refire repeats an occasion', async () => {
    const { cadre, json } = place()
    await json('schedules', 'add', 'digest', ...CRON, '--name', 'nightly', '-i', 'day={{ slot }}')
    const ran = await cadre('triggers', 'run', 'nightly')
    expect([ran.code, ran.stderr]).toEqual([0, expect.stringContaining('completed')])
    const [firing] = (await json('triggers', 'firings', 'nightly')).firings
    expect(firing).toMatchObject({ state: 'started', manual: { by: expect.stringMatching(/^local:/) } })
    expect(firing.occasion).toStartWith('now:')
    const { runs } = await json('runs')
    expect(runs).toEqual([expect.objectContaining({ run_id: firing.run_id, state: 'completed' })])
    const again = await cadre('triggers', 'refire', firing.id)
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('starts a second one')])
    expect((await cadre('triggers', 'refire', firing.id.slice(0, 18), '--again')).code).toBe(0)
    const { firings } = await json('triggers', 'firings', 'nightly', '--state', 'started')
    expect(firings.map((each: { occasion: string }) => each.occasion)).toEqual([
      `${firing.occasion}#2`,
      firing.occasion,
    ])
    expect((await cadre('why', firing.id)).stdout).toStartWith(
      `${firing.occasion} of nightly started run ${firing.run_id}\n`,
    )
    expect((await json('why', firing.id)).id).toBe(firing.id)
    expect((await json('why', 'nightly')).name).toBe('nightly')
    // A run is explained as before.
    expect((await cadre('why', firing.run_id)).stdout).toContain('completed')
  })

  test('what starts nothing exits 2, and status, doctor and why tell it', async () => {
    const { cadre, json, cwd } = place()
    await json('schedules', 'add', 'digest', ...CRON, '--name', 'nightly', '--when', 'slot == "never"')
    const skipped = await cadre('triggers', 'run', 'nightly')
    expect([skipped.code, skipped.stdout]).toEqual([2, expect.stringContaining('`when` is false: slot == "never"')])
    expect((await json('status')).triggers).toMatchObject({ all: 1, active: 1, wrong: [], next: { name: 'nightly' } })
    await json('schedules', 'add', 'digest', ...CRON, '--name', 'wrong', '-i', 'day={{ slot == now }}')
    const refused = await cadre('triggers', 'run', 'wrong')
    expect([refused.code, refused.stdout]).toEqual([2, expect.stringContaining('refused')])
    renameSync(join(cwd, 'digest'), join(cwd, 'gone'))
    const broken = await cadre('triggers', 'run', 'nightly')
    expect([broken.code, broken.stdout]).toEqual([2, expect.stringContaining('refused')])
    const { problems } = await json('status')
    expect(problems).toEqual(
      expect.arrayContaining([
        expect.stringContaining(IDLE),
        expect.stringMatching(/^trigger nightly: broken since .*digest/),
        expect.stringMatching(/^trigger wrong: refused at .* \(inputs\): .*day/),
      ]),
    )
    expect((await cadre('status')).stdout).toMatch(/^triggers +1 of 2 active; next wrong at /m)
    const doctor = await cadre('doctor')
    expect([doctor.code, doctor.stdout]).toEqual([1, expect.stringContaining('trigger nightly')])
    const why = (await cadre('why', 'nightly')).stdout.split('\n')
    expect(why.some(line => line.includes('broken'))).toBe(true)
    const [first, second] = why.filter(line => line.startsWith('  '))
    expect([first, second]).toEqual([expect.stringContaining('team: '), expect.stringContaining('when: ')])
    const { firings } = await json('triggers', 'firings', 'nightly', '--reason', 'team')
    expect((await cadre('why', firings[0].id)).stdout).toContain('was refused, team: ')
    // A run that starts shows that it was mended.
    renameSync(join(cwd, 'gone'), join(cwd, 'digest'))
    await json('triggers', 'update', 'wrong', '-i', 'day={{ slot }}')
    expect((await json('status')).triggers.wrong).toContainEqual(expect.objectContaining({ name: 'wrong' }))
    expect((await cadre('triggers', 'run', 'wrong')).code).toBe(0)
    expect((await json('status')).triggers.wrong.map(({ name }: { name: string }) => name)).not.toContain('wrong')
  })

  test('a backfill says which slots were due before the schedule was added', async () => {
    const { cadre } = place()
    await cadre('schedules', 'add', 'digest', '--cron', '0 * * * *', '--name', 'hourly')
    const { code, stderr } = await cadre('schedules', 'backfill', 'hourly', '--from', '1d', '--dry-run')
    expect([code, stderr]).toEqual([0, '24 slots would start\n24 of them were due before hourly was added\n'])
  })

  test('what a team declares is listed where no name is given', async () => {
    const rule = '{ name: NAME, schedule: { cron: "@daily", tz: UTC } }'
    const triggers = `triggers: [${rule.replace('NAME', 'mondays')}, ${rule.replace('NAME', 'late')}]\n`
    const { cadre } = place(TEAM + triggers)
    const { code, stderr } = await cadre('triggers', 'enable', './digest')
    expect([code, stderr]).toEqual([2, expect.stringContaining('say which of its triggers: mondays, late, such as: ')])
    expect(stderr).toMatch(/triggers enable \.\/digest mondays$/m)
    const none = await place().cadre('triggers', 'enable', './digest')
    expect([none.code, none.stderr]).toEqual([2, 'error  ./digest declares no triggers in its team.yml\n'])
  })

  test('run mentions triggers where some are enabled', async () => {
    const { cadre, json } = place()
    expect((await cadre('run', 'digest')).stderr).not.toContain(IDLE)
    await json('schedules', 'add', 'digest', ...CRON)
    const { code, stderr } = await cadre('run', 'digest')
    expect([code, stderr]).toEqual([0, expect.stringContaining(`${IDLE} (1 trigger is enabled)`)])
    await json('triggers', 'pause', 'nightly-digest')
    expect((await cadre('run', 'digest')).stderr).not.toContain(IDLE)
  })
})

test('with a daemon the same commands go through it', async () => {
  const { cadre, json, home } = place(SLOW)
  const daemon = await spawnDaemon({ home })
  const added = await cadre('schedules', 'add', 'digest', '--every', '90m')
  expect(added).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^a slot missed .*\nnobody is told .*\n.*notify\.on_fail.*\n$/),
  })
  expect(added.stdout).toMatch(/^slow {2}active {2}every 1h 30m from /)
  expect((await cadre('schedules')).stderr).toBe('')
  expect((await cadre('why', 'slow')).stdout).toStartWith('slow has had no occasion yet')
  const started = await cadre('triggers', 'run', 'slow')
  expect([started.code, started.stderr]).toEqual([0, expect.stringContaining('the run goes on in the daemon')])
  const runId = started.stdout.trim()
  const held = await cadre('triggers', 'run', 'slow')
  expect([held.code, held.stdout]).toEqual([2, expect.stringContaining(`overlap: run ${runId} has not ended`)])
  expect((await cadre('why', 'slow')).stdout).toContain(`overlap: run ${runId} has not ended`)
  const forced = await json('triggers', 'run', 'slow', '--force')
  expect(forced).toMatchObject({ state: 'started', name: 'slow' })
  expect((await json('status')).problems).toEqual([])
  for (const run of [runId, forced.run_id]) await cadre('cancel', run)
  const gone = await cadre('triggers', 'show', 'slo')
  expect([gone.code, gone.stderr]).toEqual([2, expect.stringContaining('there is no trigger slo')])
  await daemon.stop()
  expect(await json('triggers', 'show', 'slow')).toMatchObject({ state: 'active', last: { length: 3 } })
}, 30_000)

test('hooks: a secret from stdin or a file, deliveries, and what came', async () => {
  const { cadre, json, home, cwd } = place()
  const secret = 'a-secret-that-nobody-can-guess'
  writeFileSync(join(cwd, 'secret.txt'), `${secret}\n`)
  const hook = ['hooks', 'add', 'digest', '--scheme', 'bearer', '-i', 'day={{ body.day }}']
  expect(await cadre(...hook, '--secret', secret)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('write -'),
  })
  expect(await cadre(...hook)).toMatchObject({ code: 2, stderr: expect.stringContaining('secret: is required') })
  const added = await cadre(...hook, '--secret', '@secret.txt')
  expect([added.code, added.stdout]).toEqual([0, expect.stringMatching(/^url +\/v1\/hooks\/[\w-]{22}$/m)])
  expect(added.stdout).toContain('bearer signs no time')
  expect(added.stderr).toStartWith(IDLE)
  expect(added.stderr).toMatch(
    /^a sender outside this machine needs a tunnel .* CADRE_HOOK_HOSTS=\S+ .*serve; .*--realm$/m,
  )
  const paused = await cadre('hooks', 'pause', 'nightly-digest')
  expect(paused.stdout.trimEnd().split('\n')).toHaveLength(1)
  const caught = await cadre('hooks', 'resume', 'nightly-digest', '--catch-up', 'last')
  expect([caught.code, caught.stderr]).toEqual([2, expect.stringContaining('a hook has no slots to catch up')])
  expect((await cadre('hooks', 'resume', 'nightly-digest')).code).toBe(0)
  expect((await cadre('schedules')).stdout).toBe('')
  expect((await cadre('hooks')).stdout).toStartWith('nightly-digest')
  const daemon = await spawnDaemon({ home })
  const { url, secrets } = await json('hooks', 'show', 'nightly-digest')
  expect(url).toStartWith(`${daemon.url}/v1/hooks/`)
  writeFileSync(join(cwd, 'other.txt'), 'another-secret-of-this-hook')
  await json('hooks', 'update', 'nightly-digest', '--add-secret', '@other.txt')
  const changed = await json('hooks', 'update', 'nightly-digest', '--expire-secret', secrets[0].id)
  expect(changed.secrets.map((each: { expires_at: number | null }) => each.expires_at === null)).toEqual([false, true])
  const send = (bearer: string) =>
    fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json', 'idempotency-key': 'k-1' },
      body: JSON.stringify({ day: 'Monday', says: 'another-secret-of-this-hook' }),
    })
  expect([(await send(secret)).status, (await send('another-secret-of-this-hook')).status]).toEqual([401, 202])
  const { stdout } = await cadre('hooks', 'firings', 'nightly-digest', '--body')
  expect(stdout).toMatch(/ k-1 .*started/)
  expect(stdout).toContain('"day":"Monday"')
  expect(stdout).not.toContain('another-secret')
  expect(stdout).toContain('refused')
  writeFileSync(join(cwd, 'delivery.json'), '{"day":7}')
  const preview = await cadre('hooks', 'preview', 'nightly-digest', '--body', 'delivery.json', '--header', 'X-A: b')
  expect(preview.stdout).toContain('refused  inputs: ')
  const [firing] = (await json('hooks', 'firings', 'nightly-digest', '--state', 'started')).firings
  expect((await json('runs')).runs[0].started_by).toMatchObject({ kind: 'hook', delivery: 'k-1', firing: firing.id })
  expect((await json('runs', '--started-by', 'hook:nightly-digest')).runs).toHaveLength(1)
  await daemon.stop()
}, 30_000)

test('names of triggers and zones are completed', async () => {
  const { cadre, json } = place()
  await json('schedules', 'add', 'digest', ...CRON, '--name', 'nightly')
  expect((await cadre('complete', '--', 'triggers', 'show', 'ni')).stdout).toStartWith('nightly\tat 06:00')
  expect((await cadre('complete', '--', 'schedules', 'add', '--tz', 'Europe/Ber')).stdout).toBe('Europe/Berlin\n')
  expect((await cadre('complete', '--', 'schedules', 'add', '--overlap', 'q')).stdout).toBe('queue\n')
})

test('a watch is added, previewed, and starts a run with a file that comes while a daemon serves', async () => {
  const { home, cwd, cadre, json } = place()
  mkdirSync(join(cwd, 'in'))
  const inputs = ['-i', 'day={{ files[0].name }}']
  const added = await cadre(
    'watches',
    'add',
    'digest',
    '--name',
    'papers',
    '--folder',
    'in',
    '--match',
    '*.pdf',
    ...inputs,
  )
  const words = `each file *.pdf that comes or changes in ${join(cwd, 'in')}`
  expect(added).toMatchObject({ code: 0, stdout: `papers  active  ${words}\n` })
  expect(added.stderr).toStartWith(`${IDLE}\n`)
  writeFileSync(join(cwd, 'in/a.pdf'), 'hello')
  const preview = await cadre('watches', 'preview', 'papers')
  expect(preview.stdout).toStartWith(`${words}\n  added  ${join(cwd, 'in/a.pdf')}  5 B`)
  expect(await json('watches', 'update', 'papers', '--settle', '100ms', '--poll', '1s')).toMatchObject({
    ...{ settle: '100ms', match: ['*.pdf'], on: ['added', 'changed'], batch: null, claim: false },
  })
  expect((await cadre('watches', 'show', 'papers')).stdout).toContain('looks     every 1s')
  const bad = await cadre('watches', 'add', 'digest', '--folder', 'none', '--match', '../x')
  expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining('must be a path inside the folder')])
  await spawnDaemon({ home })
  const firings = () => json('watches', 'firings', 'papers')
  const [first] = await until(async () => {
    const { firings: found } = await firings()
    return found.length > 0 && found
  }, 'the file starts a run')
  expect(first).toMatchObject({ state: 'started', files: [{ name: 'a.pdf', bytes: 5 }] })
  const { runs } = await json('runs', '--started-by', 'watch:papers')
  expect(runs.map(({ run_id }: { run_id: string }) => run_id)).toEqual([first.run_id])
  rmSync(join(cwd, 'in'), { recursive: true })
  const why = await until(async () => {
    const { stdout } = await cadre('why', 'papers')
    return stdout.includes('broken') && stdout
  }, 'it is broken')
  expect(why).toContain('there is no such folder')
})
