// What `runs/why` says: one paragraph that names the reason where it arose.

import { beforeAll, expect, test } from 'bun:test'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'

const BELOW = `name: "@local/below"
version: 1.0.0
inputs: [{ name: nap, type: number, default: 0 }]
phases: [{ name: nap, agent: exec, commands: [{ name: c, env: { NAP: "{{ inputs.nap }}" }, run: 'sleep "$NAP"' }] }]
`
const team = (phase: string) => `name: "@local/top"
version: 1.0.0
phases: [${phase}]
`

let daemon: RunningDaemon
beforeAll(async () => {
  daemon = await spawnDaemon()
})

async function why(phase: string): Promise<string> {
  const path = files({ 'team.yml': team(phase), 'below/team.yml': BELOW })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  await daemon.ended(run_id)
  return (await daemon.call('/v1/runs/why', { run_id })).text
}

test('many lines of a command become one paragraph', async () => {
  const text = await why(
    `{ name: a, agent: exec, commands: [{ name: c, run: "printf 'one\\\\ntwo\\\\n' >&2; exit 3" }] }`,
  )
  expect(text).toContain('command c exited with code 3: one / two')
  expect(text).not.toContain('\n')
})

test('a map that could not begin is to blame itself', async () => {
  expect(await why('{ name: each, type: map, items: [1, 1], key: "{{ item }}", team: ./below }')).toContain(
    'because its phase each (map) failed: team.yml:3:',
  )
})

test('so is a phase that took too long, not the sub-run that was cancelled with it', async () => {
  expect(await why('{ name: t, type: team, team: ./below, inputs: { nap: 30 }, timeout: 300ms }')).toContain(
    'because its phase t (team) failed: the attempt took longer than 300ms',
  )
})
