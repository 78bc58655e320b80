// What was printed in code review to be one thing is it: characters that nobody sees, in teams, in the files of packages
// and in agents, are named by `validate`, `publish`, `teams/reach` and the pages.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { named, unseenNotes } from '../../lib/text/unseen.ts'
import { command, files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { INVISIBLE } from '../support/hostile.ts'
import { ADMIN_PASSWORD, startTestHub, type TestHub } from '../support/hub.ts'
import { hasBrowser, look, startBrowser } from '../web/browser.ts'

setDefaultTimeout(120_000)
let hub: TestHub
const home = folder()
beforeAll(async () => {
  hub = await startTestHub()
  expect((await command(['login', 'admin', '--hub', hub.url], { home, stdin: ADMIN_PASSWORD })).code).toBe(0)
})
afterAll(() => hub.stop())

const code = (character: string) => `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`

/** The command is shown in another order than it is carried out. */
const TEAM = `name: "@admin/hidden"
version: 1.0.0
phases:
  - name: say
    agent: exec
    commands: [{ name: c, run: "echo \u202e\u2066safe\u2069" }]
`
const SCRIPT = '#!/bin/sh\nrm\u00a0-rf\u200b /\n'

test.each([...INVISIBLE, '\u3164', '\u115f', '\u034f', '\ufe0f', '\u{e007f}', '\u{e0100}', '\u2800', '\x1b', '\x9b'])(
  '%j is named with its place',
  character => {
    expect(unseenNotes('team.yml', `a: 1\r\nb: x${character}y\n`)).toEqual([
      `team.yml:2:5: ${code(character)} stands here, which is not seen as what it is`,
    ])
    expect(named(`a${character}b\n`)).toBe(`a<${code(character)}>b\n`)
    expect(unseenNotes(`a${character}b.sh`, '')).toEqual([
      `a<${code(character)}>b.sh: the name of this file has ${code(character)}, which is not seen`,
    ])
  },
)

test('what looks like what it is has no note', () => {
  const usual = '\ufeffÉtat, 漢字, かな, עברית, العربية, می\u200cخواهم, क्\u200dष, 👩‍🚀 ⚠️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ✔︎\r\n\ta\n'
  expect(unseenNotes('team.yml', usual)).toEqual([])
  expect(named(usual)).toBe(usual)
  expect(unseenNotes('README.md', 'Publier\u00a0? 10\u202f000\n')).toEqual([])
  expect(unseenNotes('run.sh', 'rm\u00a0-rf /\n')).toHaveLength(1)
  expect(unseenNotes('picture.png', new Uint8Array([0x89, 0x50, 0, 0xe2, 0x80, 0xae]))).toEqual([])
  expect(unseenNotes('team.yml', '\u202e'.repeat(100))).toHaveLength(21)
})

test('`validate` names them in teams, in the files beside them, and in agents that somebody added', async () => {
  const own = folder()
  mkdirSync(join(own, 'agents'))
  writeFileSync(
    join(own, 'agents/say.ts'),
    `import { agent, Type } from 'cadre'
// \u202e a comment that hides code
export default agent({
  type: 'connector', version: '1.0.0', description: 'Says something.', settings: Type.Object({}),
  source: { effect: 'read', entry: Type.Object({ name: Type.String() }), async run() { return { text: 'said' } } },
})
`,
  )
  const more = '  - name: other\n    agent: say\n    sources: [{ name: x }]\n'
  const path = files({ 'team.yml': TEAM + more, 'run.sh': SCRIPT })
  const { code, stdout } = await command(['validate', path], { home: own })
  expect([code, stdout.includes('\u202e')]).toEqual([0, false])
  for (const place of ['team.yml:6:38: U+202E', 'team.yml:6:39: U+2066', 'run.sh:2:3: U+00A0', 'run.sh:2:7: U+200B']) {
    expect(stdout).toContain(`note: ${place}`)
  }
  expect(stdout).toMatch(/note: \S+agents\/say\.ts:2:4: U\+202E/)
  const { notes } = JSON.parse((await command(['validate', path, '--json'], { home: own })).stdout)
  expect(notes.join('\n')).toContain('team.yml:6:38: U+202E')
  // A name that is wrong because of one: what stands there is said beside what is wrong.
  const wrong = files({ 'team.yml': TEAM.replace('name: say', 'name: s\u200bay') })
  expect((await command(['validate', wrong], { home: own })).stderr).toContain('team.yml:4:12: U+200B')
})

test('`publish` names them before anybody runs it, and refuses them in the names of files', async () => {
  const path = files({ 'team.yml': TEAM, 'run.sh': SCRIPT })
  const { code, stderr } = await command(['publish', path], { home })
  expect([code, stderr.includes('\u202e')]).toEqual([0, false])
  for (const place of ['team.yml:6:38: U+202E', 'run.sh:2:7: U+200B']) expect(stderr).toContain(`note  ${place}`)
  const named = files({ 'team.yml': TEAM.replace('1.0.0', '2.0.0'), 'a\u202eb.sh': SCRIPT })
  const refused = await command(['publish', named], { home })
  expect([refused.code, refused.stderr.includes('\u202e')]).toEqual([2, false])
  expect(refused.stderr).toContain('a<U+202E>b.sh')
})

test('`teams/reach` names them, so that versions can be compared by them', async () => {
  const { unseen } = await hub.ok(hub.admin, 'teams/reach', { team: '@admin/hidden@1.0.0' })
  expect(unseen).toContain('team.yml:6:38: U+202E stands here, which is not seen as what it is')
  expect(unseen).toContain('run.sh:2:7: U+200B stands here, which is not seen as what it is')
})

test.skipIf(!hasBrowser)('a page shows by its name what nobody sees', async () => {
  const daemon = await spawnDaemon()
  const browser = await startBrowser()
  try {
    const path = files({ 'team.yml': TEAM.replace('@admin', '@local') })
    const { run_id } = await daemon.call('/v1/runs/start', { path, run_name: 'safe\u202egnp.exe \u200b👩‍🚀' })
    await daemon.ended(run_id)
    const { page, complaints } = await look(browser, `${daemon.url}/#/runs`)
    await page.getByText('safe<U+202E>gnp.exe <U+200B>👩‍🚀').first().waitFor()
    for (const place of [`runs/${run_id}`, `runs/${run_id}/tree`, `runs/${run_id}/logs`]) {
      await page.goto(`${daemon.url}/#/${place}`)
      await page.getByText('U+202E').first().waitFor()
      const text = (await page.locator('body').textContent()) ?? ''
      expect([place, text.includes('\u202e'), complaints]).toEqual([place, false, []])
    }
  } finally {
    await browser.close()
    await daemon.stop()
  }
})
