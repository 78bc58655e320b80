// How long a run took, in everything that shows it: what it lived, and not what its wall clock says.

import { expect, test } from 'bun:test'
import { change } from '../support/aged-home.ts'
import { command, files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const DAY = 24 * 60 * 60_000
const TEAM = `name: "@local/quick"
version: 1.0.0
phases: [{ name: work, agent: exec, commands: [{ name: c, run: 'true' }] }]
`
const COMMANDS = [['runs'], ['show', 'last'], ['tree', 'last'], ['why', 'last'], ['watch', 'last']]

test('every command says what the run lived, and what its times say where that was not counted', async () => {
  const home = folder()
  expect((await command(['run', files({ 'team.yml': TEAM })], { home })).code).toBe(0)
  // Its machine slept for three days, and only the clock of the machine knows.
  change(home, 'UPDATE runs SET started_at = started_at - ?, lived_ms = 42000', 3 * DAY)
  const said = () =>
    Promise.all(
      COMMANDS.map(async args => {
        const { stdout, stderr } = await command(args, { home })
        return [args[0], `${stdout}${stderr}`.match(/\b(42s|3d)\b/)?.[0]]
      }),
    )
  expect(await said()).toEqual(COMMANDS.map(([name]) => [name, '42s']))
  const { lived_ms } = JSON.parse((await command(['show', 'last', '--json'], { home })).stdout)
  expect(lived_ms).toBe(42_000)
  change(home, 'UPDATE runs SET lived_ms = NULL')
  expect(await said()).toEqual(COMMANDS.map(([name]) => [name, '3d']))
}, 60_000)
