// The lines for `crontab -e` in the examples, as cron calls them: by sh, in the home, with a PATH of what every system has.

import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startProgram } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const ROOT = join(import.meta.dir, '../..')
const lines = readdirSync(join(ROOT, 'examples'))
  .sort()
  .flatMap(example => {
    const text = readFileSync(join(ROOT, 'examples', example, 'team.yml'), 'utf8')
    return Array.from(text.matchAll(/^# +(?:[\d*]\S* +){5}(.+)$/gm), ([, command]) => ({ example, command: command! }))
  })

test('three examples have one', () => {
  expect(lines.map(({ example }) => example)).toEqual(['backup-check', 'dependency-report', 'weekly-metrics'])
})

test.each(lines)('the line of $example finds cadre, its team and its inputs', async ({ example, command }) => {
  // crontab(5): a percent sign that is not escaped ends the command.
  expect(command).not.toMatch(/(?<!\\)%/)
  const home = folder()
  symlinkSync(ROOT, join(home, 'cadre'))
  for (const name of ['.cadre', 'teams', 'src']) mkdirSync(join(home, name))
  const metrics = [{ name: 'Requests', query: 'sum:requests{*}' }]
  writeFileSync(join(home, 'teams/weekly-metrics.json'), JSON.stringify({ metrics }))
  const agents = {
    chat: { channels: { team: 'https://hooks.slack.com/services/T000/B000/x' } },
    metrics: { api_key: 'key-of-the-test', app_key: 'key-of-the-test' },
    objectstore: { access_key_id: 'id', secret_access_key: 'secret-of-the-test', region: 'eu-central-1' },
  }
  writeFileSync(join(home, '.cadre/settings.yml'), JSON.stringify({ agents }), { mode: 0o600 })
  const planned = command.replaceAll('\\%', '%').replace(' run ', ' plan ')
  const child = startProgram(['sh', '-c', planned], {
    ...{ cwd: home, home: join(home, '.cadre'), stdin: '' },
    env: { HOME: home, PATH: '/usr/bin:/bin', SHELL: '/bin/sh', LOGNAME: 'somebody' },
  })
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toContain(`@local/${example}`)
})
