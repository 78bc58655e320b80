// The way to a terminal, to JSON and to the log: whatever text comes from outside, nothing in it is a command there,
// nothing begins a line, and nothing is unseen. Only lib/text/printable.ts makes what lib/text/terminal.ts writes.

import { expect, test } from 'bun:test'
import { createLog } from '../../lib/log/log.ts'
import { clip, createPaint, joined, line, lines, pad, wrap } from '../../lib/text/printable.ts'
import { print } from '../../lib/text/terminal.ts'
import { seenJson } from '../../lib/text/unseen.ts'
import { hostileJson, hostileTexts } from '../support/hostile.ts'
import { randomFrom, seedOf } from '../support/random.ts'
import { obeyed, unseen } from '../support/terminal-bytes.ts'

const random = randomFrom(seedOf('sinks'))
const texts = hostileTexts(random, 500)

test('text from outside is one line on a terminal, without commands and without what nobody sees', () => {
  const paint = createPaint({}, true)
  for (const text of texts) {
    const shown = line`run ${text} ended${paint.red(text)}`
    expect([text, obeyed(shown.text), shown.text.includes('\n')]).toEqual([text, [], false])
    for (const each of [...lines(text), pad(text, 9), joined([text, text], '  '), ...wrap(line`${text}`, 20)]) {
      expect([text, obeyed(each.text), each.text.includes('\n')]).toEqual([text, [], false])
    }
    expect([text, wrap(line`${text}`, 20).every(({ width }) => width <= 20)]).toEqual([text, true])
    expect([text, clip(line`${text}`, 20).width > 20]).toEqual([text, false])
  }
})

test('colours of others are not colours', () => {
  expect(line`${'\x1b[31mred\x9b1m'}`.text).toBe('·[31mred·1m')
  // What was printable already keeps its colours, and loses them where it becomes a text.
  const red = createPaint({}, true).red('a')
  expect(line`${red}`.text).toBe('\x1b[31ma\x1b[39m')
  expect(`${red}`).toBe('a')
})

test('what nobody sees is shown by name, and emoji stay', () => {
  expect(line`${'a\u202eb\u200bc\u{e0041}d\u3164'}`.text).toBe('a<U+202E>b<U+200B>c<U+E0041>d<U+3164>')
  expect(line`${'⚠️ 👩‍🚀 漢字 é'}`.text).toBe('⚠ 👩🚀 漢字 é')
})

test('JSON that is printed has every unseen character escaped, and the same value', () => {
  for (let count = 0; count < 1_000; count++) {
    const value = hostileJson(random)
    for (const text of [JSON.stringify(value), JSON.stringify(value, null, 2)]) {
      expect(JSON.parse(seenJson(text))).toEqual(JSON.parse(text))
      expect([text, unseen(seenJson(text))]).toEqual([text, []])
    }
  }
})

test('a line of the log is one line in both formats, and nothing in it is obeyed', () => {
  for (const format of ['human', 'json'] as const) {
    let said = ''
    const log = createLog({ format, write: text => (said = text) })
    for (const text of texts) {
      log.info('event', { text, [text]: { below: text } })
      expect([format, text, obeyed(said), said.includes('\n')]).toEqual([format, text, [], false])
    }
  }
})

test('no other file writes to a terminal', async () => {
  const WRITERS = ['lib/text/terminal.ts', 'lib/log/log.ts']
  const WRITES =
    /std(out|err)\s*\.\s*write|console\s*\.\s*(log|info|debug|error|warn|table|dir)\s*\(|Bun\.(stdout|stderr)|\b(stream|stdout|stderr)\.(write|end)\(|\/dev\/tty/
  // A file of a run, which is written as it is where no terminal reads it.
  const BYTES = ['lib/daemon/cli/runs/files.ts']
  const found: string[] = []
  for (const glob of ['lib/{daemon,hub,team,run,settings,wire,http,agent}/**/*.ts', 'lib/*.ts', 'db/**/*.ts', '*.ts']) {
    for await (const file of new Bun.Glob(glob).scan(`${import.meta.dir}/../..`)) {
      if (WRITERS.includes(file) || BYTES.includes(file)) continue
      const text = await Bun.file(`${import.meta.dir}/../../${file}`).text()
      for (const [at, row] of text.split('\n').entries()) {
        if (WRITES.test(row) && !/^\s*(\/\/|\*)/.test(row)) found.push(`${file}:${at + 1} ${row.trim()}`)
      }
    }
  }
  expect(found).toEqual([])
})

test('a text that was not cleaned does not compile', () => {
  // @ts-expect-error: a string is not printable
  const wrong = () => print('text')
  // @ts-expect-error: neither is something that looks like it
  const other = () => print({ text: 'text', width: 4, isEmpty: false })
  expect([wrong, other]).toHaveLength(2)
})
