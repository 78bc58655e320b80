// `notify.on_fail` of a home and its triggers: who hears of a refusal for which there is no run, once, whatever is killed.

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { MINUTE, triggerHome, WATCHED } from '../support/triggers.ts'
import { webhook } from '../support/webhook.ts'

const TOLD = (url: string) => `agents: { chat: { channels: { ops: "${url}" } } }\nnotify: { on_fail: ["chat:ops"] }\n`

/** A home with an account that is told. */
async function home(url: string) {
  const place = folder()
  writeFileSync(join(place, 'settings.yml'), TOLD(url), { mode: 0o600 })
  return triggerHome(place)
}

const NIGHTLY = { name: 'nightly' }

const rowsOf = ({ daemon: { db } }: Awaited<ReturnType<typeof home>>) =>
  db.query<{ state: string; error: string | null }, []>('SELECT state, error FROM tells ORDER BY at, id').all()

test('each refusal is told, and a trigger that broke once', async () => {
  await using hook = webhook()
  await using t = await home(hook.url)
  await t.add({ inputs: { day: '{{ slot.nothing }}' } })
  for (let n = 0; n < 2; n++) await t.later(5 * MINUTE)
  t.daemon.tells.sendAll()
  await until(() => hook.told.length === 2, 'the messages')
  for (const part of [t.team, 'trigger nightly refused 2026-11-23T00:05Z (expression)', 'nothing']) {
    expect(hook.told[0]).toContain(part)
  }
  t.removeTeam()
  for (let n = 0; n < 3; n++) await t.later(5 * MINUTE)
  t.daemon.tells.sendAll()
  await until(() => hook.told.length === 3, 'the message that it broke')
  expect(hook.told[2]).toContain('trigger nightly is broken (team), and starts nothing until that ends')
  t.restoreTeam(WATCHED)
  await until(() => rowsOf(t).every(({ state }) => state === 'delivered'), 'all are delivered')
})

test('who asks for a run hears of the refusal, and nobody else', async () => {
  await using hook = webhook()
  await using t = await home(hook.url)
  await t.add({ inputs: { day: '{{ slot.nothing }}' } })
  const { state } = await t.triggers.runNow(NIGHTLY, { force: false, by: 'local:ada' })
  expect([state, rowsOf(t)]).toEqual(['refused', []])
})

test('of what is refused again and again an account hears so often in an hour, and the last message says so', async () => {
  await using hook = webhook()
  await using t = await home(hook.url)
  await t.add({ inputs: { day: '{{ slot.nothing }}' } })
  for (let n = 0; n < 25; n++) await t.later(5 * MINUTE)
  t.daemon.tells.sendAll()
  await until(() => rowsOf(t).every(({ state }) => state === 'delivered'), 'all messages')
  expect(hook.told).toHaveLength(20)
  expect(hook.told.at(-1)).toContain('within the hour is not told')
})

test('without an account nothing is recorded', async () => {
  await using t = await triggerHome()
  await t.add({ inputs: { day: '{{ slot.nothing }}' } })
  await t.later(5 * MINUTE)
  expect([t.rows(), rowsOf(t)]).toEqual([['23T00:05 refused expression'], []])
})

test('a kill loses no message and repeats none, and status and doctor say that nobody knows', async () => {
  await using hook = webhook()
  const before = await home(hook.url)
  await before.add({ inputs: { day: '{{ slot.nothing }}' } })
  await before.later(5 * MINUTE)
  // The daemon below goes by another clock.
  before.triggers.pause(NIGHTLY, null, 'local:ada')
  await before.close()
  expect(hook.told).toEqual([])
  hook.held = true
  const daemon = await spawnDaemon({ home: before.home })
  await until(() => hook.told.length === 1, 'the message')
  await daemon.kill('SIGKILL')
  hook.held = false
  const again = await spawnDaemon({ home: before.home })
  const lost = 'chat:ops did not get a message, or may not have got it'
  await until(async () => (await command(['status'], before)).stdout.includes(lost), 'the doubt in status')
  expect((await command(['doctor'], before)).stdout).toContain('it may have been sent; the daemon ended before it knew')
  expect((await command(['why', 'nightly'], before)).stdout).toContain(lost)
  expect(hook.told).toHaveLength(1)
  await again.stop()
}, 120_000)
