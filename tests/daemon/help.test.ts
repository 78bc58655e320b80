// `--help` of every command: it says what the command does, with calls that can be typed, and the options in them are those
// of the command.

import { expect, test } from 'bun:test'
import { HEADINGS } from '../../lib/daemon/cli/kit/command-table.ts'
import { HUB_COMMANDS } from '../../lib/daemon/cli/machine/complete.ts'
import { command } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { HUB } from '../support/program.ts'

const isCompiled = Boolean(process.env.CADRE_TEST_PROGRAM)
/** How examples name the program, as it was called. */
const [DAEMON_CALLED, HUB_CALLED] = isCompiled
  ? ['\\S*cadre', '\\S*cadre hub']
  : ['bun \\S+daemon\\.ts', 'bun \\S+hub\\.ts']
const home = folder()
const helpOf = async (...words: string[]) => (await command([...words, '--help'], { home })).stdout

/** The commands that a help lists, without those that are about nothing of cadre. */
function listed(help: string): string[] {
  const headings = ['Commands:', ...Object.values(HEADINGS)].map(each => RegExp.escape(each)).join('|')
  const sections = help.split(new RegExp(`\\n(?:${headings})\\n`)).slice(1)
  const names = sections.flatMap(each =>
    Array.from(each.split('\n\n')[0]!.matchAll(/^ {2}(\S+)/gm), ([, name]) => name!),
  )
  return names.filter(name => name !== 'help')
}

test('so have those of the hub', async () => {
  const commands = [['serve'], ['user'], ['user', 'add'], ['user', 'passwd'], ['backup'], ['restore']]
  const helps = commands.map(async words => {
    const child = Bun.spawn([...HUB, ...words, '--help'], { cwd: home, stdout: 'pipe' })
    expect([words, await child.stdout.text()]).toEqual([
      words,
      expect.stringMatching(new RegExp(`\\nExamples?:\\n {2}\\$ ${HUB_CALLED} ${words.join(' ')}`)),
    ])
    expect(await child.exited).toBe(0)
  })
  await Promise.all(helps)
  const whole = Bun.spawnSync([...HUB, '--help'], { cwd: home })
  expect(listed(String(whole.stdout))).toEqual(HUB_COMMANDS)
  const serve = Bun.spawnSync([...HUB, 'serve', '--help'], { cwd: home })
  expect(String(serve.stdout)).toMatch(/CADRE_HUB_DATABASE,\s+default\s+<home>\/hub\.db/)
}, 60_000)

test('every command has examples, and no example has an option that its command lacks', async () => {
  const whole = await helpOf()
  const tops = listed(whole)
  expect(tops).toEqual(expect.arrayContaining(['run', 'init', 'examples', 'settings', 'completion', 'login', 'realms']))
  expect(whole).not.toContain('complete [')
  // Two at a time, because each is a process.
  // The commands of the hub, which the compiled program has as well, are those of the test above.
  const waiting = tops.filter(name => name !== 'hub').map(name => [name])
  const helps: [words: string[], help: string][] = []
  const work = async () => {
    for (let words = waiting.pop(); words; words = waiting.pop()) {
      const help = await helpOf(...words)
      helps.push([words, help])
      if (words.length === 1) waiting.push(...listed(help).map(name => [...words!, name]))
    }
  }
  await Promise.all([work(), work()])
  for (const [words, help] of helps) {
    const examples = help.split(/\nExamples?:\n/)[1]
    expect([words, examples]).toEqual([words, expect.stringMatching(new RegExp(`^ {2}\\$ ${DAEMON_CALLED} \\w`))])
    for (const line of examples!.trimEnd().split('\n')) {
      const options = line.split(' # ')[0]!.matchAll(/ (--?[a-z][a-z-]*)/g)
      for (const [, option] of options) {
        const known = [option!, ...(line.includes(' set ') ? ['-'] : [])].some(each =>
          new RegExp(`(^|[ ,])${each}\\b`, 'm').test(help.split(/\nExamples?:\n/)[0]!),
        )
        expect([words, option, known || option === '--home']).toEqual([words, option!, true])
      }
    }
  }
}, 120_000)
