// Log lines that the disk refuses are lost, counted and not half there; the others keep their numbers.

import { expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RunLogs, readLines } from '../../lib/run/logs.ts'
import { folder } from '../support/folder.ts'

const say = (logs: RunLogs, text: string) => {
  logs.append('run', { phase: 'a', at: 1, stream: 'log', text })
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
  logs.close('run')
  const { lines } = await readLines(dir, { limit: 10 })
  expect(lines.map(({ seq, text }) => [seq, text])).toEqual([
    [1, 'one'],
    [2, 'two'],
    [3, expect.stringMatching(/^\d+ bytes dropped$/)],
  ])
})

test('half a line of a writer that died is cut off, and what follows is whole', async () => {
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
