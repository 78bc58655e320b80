// Whoever dispatches a run, or starts one from elsewhere, names files of its workspace and of the run, and no other file
// of the machine. The hub here is hostile, the daemon a real process.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { type HostileHub, jobOf, runOrder, startHostileHub } from '../support/hostile-hub.ts'

const SECRET = 'api_key: do-not-tell'
/** Shows what is in the file that it is given, by a command and by an agent. */
const SHOW = (inputs: string, run = 'cat "$DOC"') => `name: "@acme/show"
version: 1.0.0
inputs: ${inputs}
phases:
  - { name: show, agent: exec, commands: [{ name: c, env: { DOC: "{{ inputs.doc }}" }, run: ${JSON.stringify(run)} }] }
`
const DOC = '[{ name: doc, type: file }]'

let hub: HostileHub
let daemon: RunningDaemon
let workspace: string
let outside: string

beforeAll(async () => {
  hub = startHostileHub()
  outside = folder()
  writeFileSync(join(outside, 'secret.txt'), SECRET)
  workspace = folder()
  mkdirSync(join(workspace, 'docs'))
  writeFileSync(join(workspace, 'docs/a.txt'), 'harmless')
  symlinkSync(join(outside, 'secret.txt'), join(workspace, 'link.txt'))
  symlinkSync(outside, join(workspace, 'linked'))
  symlinkSync(join(outside, 'not-there'), join(workspace, 'dangling'))
  symlinkSync('docs/a.txt', join(workspace, 'inside.txt'))
  daemon = await spawnDaemon({ env: hub.env })
  appendFileSync(join(daemon.home, 'settings.yml'), `# ${SECRET}\n`)
  await daemon.call('/v1/workspaces/add', { path: workspace, name: 'ws', offer: true })
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
})

let published = 0
/** Dispatches the team, and returns the answer about its job and what its phases said. */
async function dispatched(team: string, inputs: object, where: string | null = 'ws') {
  const name = `@acme/show${++published}`
  const job = jobOf('run', runOrder(hub.publish(name, team.replace('@acme/show', name)), { inputs, workspace: where }))
  hub.deliver(job)
  const { status, error = '' } = await hub.outcome(job.job_id)
  if (status === 'failed') return { state: 'refused', said: error }
  const run = await daemon.ended(job.run_id)
  const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id: job.run_id })
  return { state: run.state, said: JSON.stringify([run.error, run.inputs, phases]) }
}

const WRONG = () => [
  ...[
    join(outside, 'secret.txt'),
    join(daemon.home, 'settings.yml'),
    '/etc/passwd',
    '../secret.txt',
    '../../etc/passwd',
  ],
  ...[
    'link.txt',
    'linked/secret.txt',
    './linked/../link.txt',
    'dangling',
    'linked/not-there',
    'docs/../../x',
    '.././x',
  ],
  ...['files/../../../settings.yml', 'files/../log.jsonl', 'files/show/../../../x', 'docs/a.txt\0', '..', '/'],
]

describe('a dispatched run', () => {
  test('is given a file of its workspace', async () => {
    for (const doc of ['docs/a.txt', './docs/a.txt', 'inside.txt']) {
      const { state, said } = await dispatched(SHOW(DOC), { doc })
      expect(state).toBe('completed')
      expect(said).toContain('harmless')
    }
  })

  test('is refused with any other file of the machine, by the name of the input', async () => {
    for (const doc of WRONG()) {
      const { state, said } = await dispatched(SHOW(DOC), { doc })
      expect([doc, state]).toEqual([doc, 'refused'])
      expect(said).toStartWith('input doc: ')
      expect(said).not.toContain(SECRET)
    }
  })

  test('is refused in the same way when the default of its package names the file', async () => {
    for (const doc of WRONG()) {
      const { state, said } = await dispatched(SHOW(`[{ name: doc, type: file, default: ${JSON.stringify(doc)} }]`), {})
      expect([doc, state]).toEqual([doc, 'refused'])
      expect(said).not.toContain(SECRET)
    }
  })

  test('without a workspace of its own has no file of another', async () => {
    for (const doc of [join(workspace, 'docs/a.txt'), '../log.jsonl', '../../../settings.yml', '..']) {
      expect(await dispatched(SHOW(DOC), { doc }, null)).toMatchObject({ state: 'refused' })
    }
  })

  test('hands no other file to a sub-run, and computes no path to one', async () => {
    for (const doc of WRONG().filter(path => !path.includes('\0'))) {
      const inline = `name: "@acme/show"
version: 1.0.0
inputs: [{ name: text, type: string }]
phases:
  - { name: each, type: map, items: "{{ [inputs.text] }}", team: ./child, inputs: { doc: "{{ item }}" } }
`
      const child = SHOW(DOC).replace('@acme/show', '@acme/child')
      const { state, said } = await dispatchedFiles({ 'team.yml': inline, 'child/team.yml': child }, { text: doc })
      expect([doc, state]).toEqual([doc, 'failed'])
      expect(said).not.toContain(SECRET)
    }
  })

  test('opens no other file with file() in an expression', async () => {
    const team = SHOW('[{ name: text, type: string }]').replace('{{ inputs.doc }}', '{{ file(inputs.text) }}')
    for (const text of WRONG().filter(path => !path.includes('\0'))) {
      const { state, said } = await dispatched(team, { text })
      expect([text, state]).toEqual([text, 'failed'])
      expect(said).not.toContain(SECRET)
    }
    expect(await dispatched(team, { text: 'docs/a.txt' })).toMatchObject({ state: 'completed' })
  })

  test('opens no other file that was put in the place of its own after the start', async () => {
    const team = `name: "@acme/show"
version: 1.0.0
inputs: ${DOC}
phases:
  - { name: swap, agent: exec, commands: [{ name: c, run: 'rm -rf swapped && ln -s ${outside} swapped' }] }
  - { name: show, agent: exec, depends_on: [swap], commands: [{ name: c, env: { DOC: "{{ inputs.doc }}" }, run: 'cat "$DOC"' }] }
`
    mkdirSync(join(workspace, 'swapped'))
    writeFileSync(join(workspace, 'swapped/secret.txt'), 'harmless')
    const { state, said } = await dispatched(team, { doc: 'swapped/secret.txt' })
    expect(state).toBe('failed')
    expect(said).not.toContain(SECRET)
  })
})

test('a workspace that contains the home lends nothing of the home', async () => {
  const around = folder()
  const home = join(around, '.cadre')
  mkdirSync(home, { mode: 0o700 })
  const inside = await spawnDaemon({ home })
  try {
    appendFileSync(join(home, 'settings.yml'), `# ${SECRET}\n`)
    await inside.call('/v1/workspaces/add', { path: around, name: 'all', offer: true })
    const place = join(home, 'packages/@acme/show/1.0.0')
    mkdirSync(place, { recursive: true })
    writeFileSync(join(place, 'team.yml'), SHOW(DOC))
    for (const doc of ['.cadre/settings.yml', '.cadre/token', '.cadre/runs/../token']) {
      const { status, body } = await inside.post('/v1/runs/start', {
        team: '@acme/show',
        workspace: 'all',
        inputs: { doc },
      })
      expect([doc, status]).toEqual([doc, 400])
      expect(body.error.message).toContain('input doc: ')
    }
  } finally {
    await inside.stop()
  }
})

test('a package that is started on this machine follows the same rule, and a path of this machine is free', async () => {
  const path = files({ 'team.yml': SHOW(DOC) })
  const doc = join(outside, 'secret.txt')
  const { run_id } = await daemon.call('/v1/runs/start', { path, inputs: { doc } })
  expect(await daemon.ended(run_id)).toMatchObject({ state: 'completed' })
  const published = hub.publish('@acme/local', SHOW(DOC).replace('@acme/show', '@acme/local'))
  const { status, body } = await daemon.post('/v1/runs/start', { team: published.team, inputs: { doc } })
  expect(status).toBe(400)
  expect(body.error.details).toMatchObject([{ path: '/inputs/doc' }])
})

/** The same for a package of several files. */
async function dispatchedFiles(contents: Record<string, string>, inputs: object) {
  const name = `@acme/show${++published}`
  const named = Object.fromEntries(
    Object.entries(contents).map(([path, text]) => [path, text.replace('@acme/show', name)]),
  )
  const job = jobOf('run', runOrder(hub.publish(name, named), { inputs, workspace: 'ws' }))
  hub.deliver(job)
  const { status, error } = await hub.outcome(job.job_id)
  if (status === 'failed') throw new Error(error)
  const run = await daemon.ended(job.run_id)
  const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id: job.run_id })
  return { state: run.state, said: JSON.stringify([run.error, phases]) }
}
