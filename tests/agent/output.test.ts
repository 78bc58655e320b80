// What is read of the output of a process, once the process has ended.

import { expect, spyOn, test } from 'bun:test'
import { paced, readLines } from '../../lib/agent/commands/output.ts'
import { createRedactor } from '../../lib/secrets/redact.ts'

test('a reader whose stream has ended waits for nothing more, so that it keeps no command from ending', async () => {
  const lines: string[] = []
  const reading = readLines(paced(new Blob(['one\ntwo\n']).stream()), {
    mask: () => createRedactor().stream(),
    isFull: () => false,
    line: text => void lines.push(text),
    missed() {},
    text() {},
    head: 0,
  })
  await reading.done
  using timers = spyOn(globalThis, 'setTimeout')
  reading.drain()
  expect(timers).not.toHaveBeenCalled()
  expect(lines).toEqual(['one', 'two'])
})
