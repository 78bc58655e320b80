// The lines that the page holds of a log: each once and in order, over the borders of its blocks, and found by a search.

import { expect, test } from 'bun:test'
import { Lines } from '../../lib/web/run/log/lines.ts'
import { Search } from '../../lib/web/run/log/search.ts'
import type { LogLine } from '../../lib/wire/records/run-records.ts'
import { until } from '../support/bounded.ts'

const line = (seq: number, text: string, phase: string | null = 'say'): LogLine => ({
  seq,
  at: 1_000 + seq,
  phase,
  stream: seq % 2 === 0 ? 'stderr' : 'stdout',
  text,
  ...(seq === 1_025 && { fields: { seq } }),
})
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

test('lines of several runs are kept once, in the order in which they came, whatever is told twice', async () => {
  const lines = new Lines()
  const said: { run_id: string; seq: number }[] = []
  const tell = (run_id: string, from: number, to: number, fresh = from) => {
    lines.add({ run_id, lines: numbers(from, to).map(seq => line(seq, `${run_id} é ${seq}`)) })
    said.push(...numbers(fresh, to).map(seq => ({ run_id, seq })))
  }
  tell('a', 1, 700)
  tell('b', 1, 900)
  tell('a', 600, 2_500, 701)
  tell('b', 1, 900, 901)
  tell('b', 901, 901)
  lines.publishCount()
  expect([lines.count.value, lines.last('a'), lines.last('b'), lines.last('c')]).toEqual([3_401, 2_500, 901, 0])
  for (const [index, { run_id, seq }] of said.entries()) {
    expect(lines.at(index)).toEqual({ run_id, ...line(seq, `${run_id} é ${seq}`) })
  }
  expect(lines.at(3_401)).toBeUndefined()
})

test('a search finds what is there and what comes later, and reads its text as text', async () => {
  const lines = new Lines()
  lines.add({
    run_id: 'a',
    lines: numbers(1, 5_000).map(seq => line(seq, `row (${seq})`, seq > 4_000 ? 'last' : 'say')),
  })
  const search = new Search(lines, 'last', 'ROW (4')
  await until(() => search.count.value === 999, 'those from 4,001 to 4,999 are found')
  lines.add({ run_id: 'a', lines: [line(5_001, 'row (4 again', 'last'), line(5_002, 'row (4 again', 'say')] })
  await until(() => search.count.value === 1_000, 'one more is found')
  expect(search.found.at(-1)).toBe(5_000)
  search.stop()
})
