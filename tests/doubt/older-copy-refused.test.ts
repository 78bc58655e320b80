// What a hub refuses stays on the daemon, is shown, and is sent again when the hub's database is another copy.

import { expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { command } from '../support/daemon.ts'
import { CopiedHub, sqlitePlace } from '../support/older-copy.ts'

const TEAM = '@admin/later'
const text = `name: "${TEAM}"\nversion: 1.0.0\nphases: [{ name: say, agent: exec, commands: [{ name: say, run: echo hello }] }]\n`

test('changes of a run whose team the copy does not know are kept, shown, and sent again to the next copy', async () => {
  const place = sqlitePlace('renamed file')
  await using hub = await CopiedHub.start(place.database)
  const { home } = await hub.daemon('ada')
  await place.copy()
  await hub.publish(TEAM, text)
  const { run_id } = await hub.ok('dispatch/run', { realm_id: hub.realm, team: TEAM })
  await hub.completed([run_id])
  await hub.restore(place)

  const standing = async () => {
    const { stdout } = await command(['status', '--json', '--hub', hub.url], { home })
    return JSON.parse(stdout)
  }
  const refused = async () => ((await standing()).hub.refused.changes > 0 ? standing() : undefined)
  const { hub: seen, problems } = await until(refused, 'what the hub has refused')
  expect(seen.refused.runs[run_id]).toBe('forbidden')
  expect(problems.join('\n')).toContain('changes of runs, which stay here')
  expect(await hub.stateOf(run_id)).toBeNull()
  const trusted = async () => (await standing()).hub.older_copy === null
  await until(trusted, 'the hub trusts its database')

  await hub.publish(TEAM, text)
  await place.copy()
  await hub.restore(place)
  await hub.completed([run_id])
  await until(async () => (await standing()).hub.refused.changes === 0, 'nothing is refused')
}, 90_000)
