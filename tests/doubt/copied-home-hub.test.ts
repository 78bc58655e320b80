// Two daemons of one home that was copied, beside a hub: they are two daemons to it, each reports its own runs, and none
// is told that the other's are missing.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { type CountingVendor, copyOf, countingVendor, homeWithFinds, writer } from '../support/copied-home.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { type ServedDaemon, serveDaemon } from '../support/served-daemon.ts'

let hub: TestHub
let vendor: CountingVendor
let team: string
beforeAll(async () => {
  hub = await startTestHub()
  vendor = countingVendor()
  team = await hub.addTeam(writer('http', vendor, 'one', 'two', 'three').replace('@local', '@admin'))
})
afterAll(() => Promise.all([hub.stop(), vendor.stop()]))

const daemonsOf = async () =>
  (await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })).daemons as { daemon_id: string; status: string }[]

async function enrolled(): Promise<ServedDaemon> {
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const home = homeWithFinds()
  const hosts = JSON.stringify([new URL(vendor.url).hostname])
  writeFileSync(join(home, 'settings.yml'), `network: { allow: ${hosts} }\n`, { mode: 0o600 })
  return serveDaemon({ home, env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token } })
}

test('a copy enrols as a daemon of its own, and what was dispatched stays with the first', async () => {
  const original = await enrolled()
  vendor.hold('two')
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team })
  await vendor.wrote('two')
  const copy = copyOf(original.home)
  const [first] = await daemonsOf()
  // With the remembered token.
  const second = await serveDaemon({ home: copy })
  const both = await until(async () => {
    const found = await daemonsOf()
    return found.length === 2 && found.every(({ status }) => status === 'online') && found
  }, 'the second daemon')
  expect(new Set(both.map(({ daemon_id }) => daemon_id)).size).toBe(2)

  // Both go on changing things, in turns.
  for (let turn = 0; turn < 3; turn++) {
    for (const daemon of [original, second]) {
      const { run_id } = await daemon.call('/v1/runs/start', { team })
      if (daemon === second) await daemon.call('/v1/runs/cancel', { run_id })
    }
  }
  vendor.release()
  const ended = await until(async () => {
    const { data } = await hub.call(hub.admin, 'runs/get', { run_id })
    return data?.state === 'completed' && data
  }, 'the end of the run at the hub')
  expect(ended.daemon_id).toBe(first!.daemon_id)
  expect((await second.call('/v1/runs/get', { run_id })).state).toBe('interrupted')
  await until(async () => {
    const { runs } = await hub.ok(hub.admin, 'runs/list', { realm_id: hub.realm })
    return runs.filter((run: { daemon_id: string }) => run.daemon_id !== first!.daemon_id).length === 3
  }, 'the runs of the second daemon')
  for (const { output } of [original, second]) {
    expect(output.stderr).not.toContain('sent to the hub again')
    expect(output.stderr).not.toContain('refused')
  }
  // A restart keeps the second identity.
  await second.stop()
  await serveDaemon({ home: copy })
  expect(await daemonsOf()).toHaveLength(2)
}, 120_000)
