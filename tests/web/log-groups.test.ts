// The groups of a log: phases, commands, and what commands mark with `::group::`.

import { expect, test } from 'bun:test'
import { Groups, rowOf } from '../../lib/web/run/log/groups.ts'
import { Lines } from '../../lib/web/run/log/lines.ts'
import type { LogLine } from '../../lib/wire/records/run-records.ts'

/** Lines as `phase command text`, `-` for no command; those of phase `log` are cadre's own. */
function groupsOf(text: string) {
  const lines = new Lines()
  const all = text
    .trim()
    .split('\n')
    .map((row, index): LogLine => {
      const [phase, command, ...words] = row.trim().split(' ') as [string, string, ...string[]]
      const isOwn = command === 'log'
      const fields = isOwn || command === '-' ? {} : { fields: { command } }
      return { seq: index + 1, at: index, phase, stream: isOwn ? 'log' : 'stdout', text: words.join(' '), ...fields }
    })
  lines.add({ run_id: 'run', lines: all })
  const groups = new Groups(lines)
  groups.read(all.length, index => index)
  const shown = () =>
    groups
      .rows()
      .map(
        ({ of, depth }) =>
          '  '.repeat(depth) + (typeof of === 'number' ? lines.at(of)!.text : `${of.title}:${of.count}`),
      )
  return { groups, shown }
}

const NESTED = `
  build a ::group::outer
  build a one
  build a ::group::inner
  build a two
  build a ::endgroup::
  build a three
  build a ::endgroup::
  build a four`

test('groups of commands nest, and begin folded', () => {
  const { groups, shown } = groupsOf(NESTED)
  expect(shown()).toEqual(['outer:7', 'four'])
  groups.setAll(true)
  expect(shown()).toEqual([
    'outer:7',
    '  one',
    '  inner:3',
    '    two',
    '    ::endgroup::',
    '  three',
    '  ::endgroup::',
    'four',
  ])
  groups.setAll(false)
  expect(shown()).toEqual(['outer:7', 'four'])
})

test('a line that is wanted unfolds what it stands in, and nothing else', () => {
  const { groups, shown } = groupsOf(`${NESTED}\n  build a ::group::other\n  build a five`)
  expect(rowOf(groups.rows(), 3)).toBe(-1)
  groups.reveal(2)
  expect(shown()).toEqual(['outer:7', '  one', '  inner:3', '  three', '  ::endgroup::', 'four', 'other:2'])
  groups.reveal(3)
  expect(shown()).toContain('    two')
  expect(rowOf(groups.rows(), 3)).toBe(3)
  expect(rowOf(groups.rows(), 2)).toBe(2)
  groups.set(groups.phases[0]!, false)
  expect(shown()).toContain('    two')
})

test('a group that nobody closed ends with its command, and phases that spoke at once stand apart', () => {
  const { groups, shown } = groupsOf(`
    build a ::group::open
    test c ready
    build a one
    build b two
    test - ::endgroup::
    build log failed: b
    test - ::group::open
    test - three
    test log failed: c`)
  groups.setAll(true)
  expect(shown()).toEqual([
    'build:4',
    '  a:2',
    '    open:2',
    '      one',
    '  b:1',
    '    two',
    '  failed: b',
    'test:5',
    '  ready',
    '  ::endgroup::',
    '  open:2',
    '    three',
    '  failed: c',
  ])
  groups.set(groups.phases[0]!, false)
  expect(shown()[1]).toBe('test:5')
})

test('a log that ends none of its groups has the lines of the deepest ones in one, and their ends end no other', () => {
  const begun = Array.from({ length: 5_000 }, (_, index) => `build a ::group::${index}`)
  const ended = begun.slice(19).map(() => 'build a ::endgroup::')
  const { groups, shown } = groupsOf(
    [...begun, ...ended, 'build a last', 'build a ::endgroup::', 'build a after'].join('\n'),
  )
  groups.setAll(true)
  const rows = shown()
  expect(Math.max(...groups.rows().map(({ depth }) => depth))).toBeLessThan(25)
  const indentOf = (text: string) => rows.find(row => row.trim() === text)!.search(/\S/)
  expect(indentOf('last') - indentOf('after')).toBe(2)
})
