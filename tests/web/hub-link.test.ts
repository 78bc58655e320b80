// The page of a daemon says above its runs what waits for the hub, and why.

import { expect, setDefaultTimeout, test } from 'bun:test'
import { spawnDaemon } from '../support/daemon.ts'
import { startFront } from '../support/front.ts'
import { startTestHub } from '../support/hub.ts'
import { expectAccessible } from './axe.ts'
import { hasBrowser, look, PATIENCE_MS, startBrowser } from './browser.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

const TEAM = `
name: "@admin/hello"
version: 1.0.0
phases:
  - { name: say, agent: exec, commands: [{ name: say, run: echo hello }] }
`

test.skipIf(!hasBrowser)('what waits for the hub is said above the runs, until nothing keeps it', async () => {
  const hub = await startTestHub({ env: { TEST_BEAT_MS: '300' } })
  await hub.addTeam(TEAM)
  await using front = startFront(hub.url)
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const daemon = await spawnDaemon({ env: { CADRE_HUB_URL: front.url, CADRE_REALM_TOKEN: token } })
  front.loses = ({ path }) => (path.endsWith('/runs/sync') ? 'request' : null)
  await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/hello' })
  const browser = await startBrowser()
  try {
    const { page, complaints } = await look(browser, `${daemon.url}/#token=${daemon.token}&/runs`)
    const notice = page.getByRole('region', { name: 'Link to the hub' })
    await notice.waitFor({ timeout: PATIENCE_MS })
    const text = await notice.textContent()
    expect(text).toContain(`The daemon cannot do its work with the hub at ${front.url}:`)
    expect(text).toContain('answered 504')
    expect(text).toMatch(/\d+ changes \([\d.]+ KiB\) and \d+ log lines? wait to be sent to it; the oldest was queued /)
    await expectAccessible(page, 'runs')
    front.loses = () => null
    await notice.waitFor({ state: 'detached', timeout: PATIENCE_MS })
    expect(complaints).toEqual([])
  } finally {
    await browser.close()
    await daemon.stop()
    await hub.stop()
  }
})
