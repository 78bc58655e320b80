// A home that was copied does not know the ids by which the other one has uploaded since: what it does not find at once
// proves nothing.

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { refusal } from '../../lib/testing/fake-vendor.ts'
import { until } from '../support/bounded.ts'
import { copyOf } from '../support/copied-home.ts'
import { command, files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { serveDaemon } from '../support/served-daemon.ts'
import { credentials, fakeDrive } from '../vendors/filestore.ts'

const TEAM = `name: "@local/two"
version: 1.0.0
phases:
  - { name: one, agent: filestore, target_entries: [{ name: it, ref: folder-1, file: one.md }] }
  - { name: two, agent: filestore, depends_on: [one], target_entries: [{ name: it, ref: folder-1, file: two.md }] }
`

test('an upload that only the other home knows by its id is looked for until it is listed', async () => {
  using drive = fakeDrive()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  drive.fail(
    /^POST \/upload/,
    async () => {
      await released
      return refusal(502)
    },
    { done: true },
  )
  const filestore = { base_url: drive.url, credentials_file: credentials('service_account') }
  const home = folder()
  writeFileSync(join(home, 'settings.yml'), JSON.stringify({ agents: { filestore } }), { mode: 0o600 })
  const original = await serveDaemon({ home })
  const path = files({ 'team.yml': TEAM, 'one.md': 'one', 'two.md': 'two' })
  const { run_id } = await original.call<{ run_id: string }>('/v1/runs/start', { path, workspace: path })
  const uploaded = () => drive.files.filter(({ parents }) => parents.includes('folder-1')).map(({ name }) => name)
  await until(() => uploaded().length === 1, 'the first upload')
  const copy = copyOf(original.home)
  release()
  expect((await original.ended(run_id)).state).toBe('completed')
  expect(uploaded()).toEqual(['one.md', 'two.md'])

  drive.lag = 1
  await serveDaemon({ home: copy, env: { CADRE_SETTLE: '3s' } })
  const resumed = await command(['resume', run_id], { home: copy })
  expect([resumed.code, uploaded()]).toEqual([0, ['one.md', 'two.md']])
  expect(drive.lag).toBeLessThan(0)
}, 60_000)
