// Log lines that the disk refuses are lost, counted and not half there; the others keep their numbers.

import { expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RunIds } from '../../lib/files/run-ids.ts'
import { readLines } from '../../lib/run/attempt/log-pages.ts'
import { RunLogs } from '../../lib/run/attempt/logs.ts'
import { maskedText } from '../../lib/secrets/masked.ts'
import { createRedactor } from '../../lib/secrets/redact.ts'
import { folder } from '../support/folder.ts'

const RUN = new RunIds().next()

const say = (logs: RunLogs, text: string) => {
  logs.append(RUN, { phase: 'a', at: 1, stream: 'log', text: createRedactor().text(text) })
  logs.flush()
}

test('a refused write leaves no gap and no half line', async () => {
  const dir = join(folder(), 'run')
  mkdirSync(dir)
  const logs = new RunLogs(() => dir)
  say(logs, 'one')
  renameSync(dir, `${dir}.away`)
  writeFileSync(dir, 'in the way')
  say(logs, 'lost')
  rmSync(dir)
  renameSync(`${dir}.away`, dir)
  say(logs, 'two')
  logs.close(RUN)
  const { lines } = await readLines(dir, { limit: 10 })
  expect(lines.map(({ seq, text }) => [seq, text])).toEqual([
    [1, 'one'],
    [2, 'two'],
    [3, '1 line (5 B) missing here, because the disk refused them'],
  ])
})

test('a partial line of a killed writer is cut off, and the following lines are complete', async () => {
  const dir = folder()
  const before = new RunLogs(() => dir)
  say(before, 'ä'.repeat(100))
  appendFileSync(join(dir, 'log.jsonl'), '{"seq":2,"phase":"a","te')
  const logs = new RunLogs(() => dir)
  say(logs, 'next')
  const { lines } = await readLines(dir, { limit: 10 })
  expect(lines.map(({ seq, text }) => [seq, text])).toEqual([
    [1, 'ä'.repeat(100)],
    [2, 'next'],
  ])
})

test('page after page gives every line once, also from the front again, and what came meanwhile', async () => {
  const dir = folder()
  const logs = new RunLogs(() => dir)
  const count = 2_000
  for (let n = 1; n <= count; n++)
    logs.append(RUN, { phase: n % 2 ? 'a' : 'b', at: n, stream: 'log', text: maskedText`ä€ ${n}` })
  logs.flush()
  const pages = async (query: { phase?: string; limit: number }, afterSeq = 0) => {
    const seqs: number[] = []
    for (;;) {
      const { lines, next } = await readLines(dir, { ...query, afterSeq })
      if (next === afterSeq) return seqs
      seqs.push(...lines.map(line => line.seq))
      afterSeq = next
    }
  }
  const all = Array.from({ length: count }, (_, n) => n + 1)
  expect(await pages({ limit: 7 })).toEqual(all)
  expect(await pages({ limit: 300 }, 1_234)).toEqual(all.slice(1_234))
  expect(await pages({ phase: 'a', limit: 9 })).toEqual(all.filter(n => n % 2 === 1))
  say(logs, 'later')
  expect(await pages({ limit: 100 }, count)).toEqual([count + 1])
  expect(await pages({ limit: 1_000 })).toEqual([...all, count + 1])
})

test('the last lines are read from the end, also where they are long, of one phase, or fewer than were asked for', async () => {
  const dir = folder()
  expect(await readLines(dir, { last: true, limit: 3 })).toMatchObject({ lines: [], next: 0 })
  const logs = new RunLogs(() => dir)
  for (let n = 1; n <= 900; n++) {
    const text = createRedactor().text(`ä€ ${n} ${'x'.repeat(n % 300)}`)
    logs.append(RUN, { phase: n === 3 ? 'rare' : 'a', at: n, stream: 'log', text })
  }
  logs.flush()
  // The writer is in the middle of a line.
  appendFileSync(join(dir, 'log.jsonl'), '{"seq":901,"phase":"a","te')
  const last = async (query: { phase?: string; limit: number }) =>
    (await readLines(dir, { ...query, last: true })).lines.map(({ seq }) => seq)
  expect(await last({ limit: 3 })).toEqual([898, 899, 900])
  expect(await last({ limit: 3, phase: 'rare' })).toEqual([3])
  expect(await last({ limit: 1_000 })).toEqual(Array.from({ length: 900 }, (_, n) => n + 1))
})
