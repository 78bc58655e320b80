// No trigger keeps the others from their turn: not one whose team cannot be read, not one that takes long, and not one of
// which many firings wait.

import { expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tick } from '../../lib/daemon/triggers/tick.ts'
import { Triggers } from '../../lib/daemon/triggers/triggers.ts'
import { until } from '../support/bounded.ts'
import { folder } from '../support/folder.ts'
import { MINUTE, triggerHome, WATCHED } from '../support/triggers.ts'

function teamIn(text = WATCHED): string {
  const team = folder()
  writeFileSync(join(team, 'team.yml'), text)
  return team
}

test('a pipe in the place of a team file breaks its trigger and no other', async () => {
  await using t = await triggerHome()
  await t.add({ name: 'a-bad' })
  await t.add({ name: 'good', team: teamIn() })
  await t.later(5 * MINUTE)
  rmSync(join(t.team, 'team.yml'))
  Bun.spawnSync(['mkfifo', join(t.team, 'team.yml')])
  for (let n = 0; n < 2; n++) await t.later(5 * MINUTE)
  expect(t.rows('good')).toHaveLength(3)
  expect(t.rows('a-bad').slice(1)).toEqual(['23T00:10 refused team', '23T00:15 refused team'])
  expect(t.triggers.get({ name: 'a-bad' }).problem).toMatchObject({ reason: 'team' })
})

/** A team that needs a secret whose command ends when the test lets it. */
function slowTeam(home: string): { team: string; end(): void } {
  const gate = join(home, 'gate')
  const command = `until [ -e ${gate} ]; do sleep 0.05; done; echo a-word-that-nobody-knows`
  const secrets = { slow: { value: `\${cmd:${command}}`, teams: ['@local/slow'] } }
  writeFileSync(join(home, 'settings.yml'), JSON.stringify({ secrets }), { mode: 0o600 })
  const team = teamIn(`name: "@local/slow"
version: 1.0.0
phases:
  - { name: say, agent: exec, commands: [{ name: say, run: "true", env: { KEY: "{{ secrets.slow }}" } }] }
`)
  return { team, end: () => writeFileSync(gate, '') }
}

test('a team that takes long holds up its trigger only, is broken meanwhile, and goes on when it comes', async () => {
  const home = folder()
  const slow = slowTeam(home)
  await using t = await triggerHome(home)
  const triggers = new Triggers(t.daemon, () => t.clock.now, 200)
  await t.add({ name: 'a-slow', team: slow.team, overlap: 'allow' })
  await t.add({ name: 'good', overlap: 'allow' })
  const look = async () => {
    t.clock.now += 5 * MINUTE
    await tick(t.daemon, triggers)
  }
  for (let n = 0; n < 3; n++) await look()
  expect([t.rows('good').length, t.rows('a-slow')]).toEqual([3, []])
  expect(triggers.get({ name: 'a-slow' })).toMatchObject({
    state: 'broken',
    problem: { reason: 'internal', text: expect.stringContaining('could not be read') },
  })
  expect(t.said.filter(line => line.includes('broken'))).toHaveLength(1)
  slow.end()
  await until(() => triggers.get({ name: 'a-slow' }).state === 'active', 'the team has come')
  expect(t.rows('a-slow')).toEqual(['23T00:05 started'])
  await look()
  await until(() => t.rows('a-slow').length === 3, 'it is looked at again')
  expect(t.rows('a-slow')).toEqual(['23T00:05 started', '23T00:10..23T00:15 x2 skipped missed', '23T00:20 started'])
})

test('many firings that wait start in several looks, and keep nobody from its turn', async () => {
  await using t = await triggerHome()
  const { id } = await t.add({ name: 'many', overlap: 'allow', at_most: { count: 1, per: '30d' } })
  await t.add({ name: 'other', team: teamIn(), overlap: 'allow' })
  for (let n = 0; n < 70; n++) await t.triggers.runNow({ name: 'many' }, { force: false, by: 'local:ada' })
  const waiting = () => t.firings('many').filter(({ state }) => state === 'waiting').length
  expect(waiting()).toBe(69)
  await t.triggers.update({ trigger_id: id }, { at_most: null }, undefined, 'local:ada')
  await t.later(5 * MINUTE)
  expect([waiting(), t.rows('other')]).toEqual([19, ['23T00:05 started']])
  // The slot that was due meanwhile has not overtaken them.
  expect(t.rows('many').filter(row => !row.startsWith('now'))).toEqual([])
  await t.look()
  expect(waiting()).toBe(0)
  expect(t.rows('many').at(-1)).toBe('23T00:05 started')
})
