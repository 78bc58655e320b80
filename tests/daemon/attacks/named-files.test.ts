// Whoever may ask what a team would do names files. One that is no team is shown to nobody.

import { expect, test } from 'bun:test'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { files, spawnDaemon } from '../../support/daemon.ts'
import { folder } from '../../support/folder.ts'
import { startTestHub } from '../../support/hub.ts'

const SECRET = 'hunter2-and-more-of-it'

test('a mistake in a file that is no team quotes nothing of it', async () => {
  const at = folder()
  const other = join(at, 'other')
  const linked = folder()
  symlinkSync(other, join(linked, 'team.yml'))
  const daemon = await spawnDaemon({ home: folder() })
  const owner = { authorization: `Bearer ${daemon.token}` }
  for (const text of [
    SECRET,
    `password: ${SECRET}`,
    `"${SECRET}`,
    `- ${SECRET}: [`,
    `${SECRET}:x:0:0:\n`,
    `name: ${SECRET}`,
  ]) {
    writeFileSync(other, text)
    for (const path of [other, linked]) {
      const said = [
        await daemon.post('/v1/teams/validate', { path }),
        await daemon.post('/v1/teams/plan', { path }),
        await daemon.post('/v1/triggers/preview', { scheme: 'bearer', team: path, body: {} }),
        await daemon.post('/v1/runs/start', { path }, owner),
      ]
      expect([text, said.map(({ status }) => status)]).toEqual([text, [400, 400, 400, 400]])
      const all = JSON.stringify(said)
      expect(all).not.toContain(SECRET)
      expect(all).toContain('this is no team')
    }
  }
  // What is one is told its mistakes.
  const team = files({ 'team.yml': `name: "@local/x"\nversion: 1.0.0\nphases: ${SECRET}\n` })
  expect(JSON.stringify(await daemon.post('/v1/teams/validate', { path: team }))).toContain(SECRET)
  await daemon.stop()
}, 60_000)

test('a reader from elsewhere names no folder of the machine', async () => {
  const hub = await startTestHub()
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const daemon = await spawnDaemon({ home: folder(), env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token } })
  const { daemons } = await hub.ok(hub.admin, 'daemons/list')
  const { token: reader } = await hub.account('reader-of-files')
  await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username: 'reader-of-files', role: 'member' })
  const minted = await hub.ok(reader, 'dispatch/tokens/mint', { daemon_id: daemons[0].id, action: 'access' })
  const headers = { authorization: `Bearer ${minted.token}` }
  const asked = (body: object) => daemon.post('/v1/triggers/preview', body, headers).then(({ status }) => status)
  const preview = (team: string) => asked({ scheme: 'bearer', team, body: {} })
  expect([await preview('/etc/passwd'), await preview('/tmp'), await preview('@acme/none')]).toEqual([403, 403, 404])
  expect([await asked({ folder: '/etc' }), await asked({ folder: '~/', match: ['*'] })]).toEqual([403, 403])
  await daemon.stop()
  await hub.stop()
}, 60_000)
