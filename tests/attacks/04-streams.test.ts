// Streams that always have data: every loop over one is in `lib/stream.ts` or `lib/agent/commands/output.ts`, which let the event
// loop turn, so that no other file can hold it.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { chunksIn, textIn } from '../../lib/stream.ts'
import { endTurn } from '../../lib/turns.ts'

const ROOT = join(import.meta.dir, '../..')

/** Files that read streams themselves, and why they may. */
const READERS: Readonly<Record<string, string>> = {
  'lib/stream.ts': 'the loop of all',
  'lib/agent/commands/output.ts': 'the loop of what processes print',
  'lib/agent/net/reply-body.ts': 'passes one chunk on when it is asked for one',
  'lib/agent/net/outgoing.ts': 'passes one chunk on when it is asked for one',
  'lib/vendors/s3/transfer.ts': 'passes one chunk on when it is asked for one',
}
/** Loops over the stdin of a command, which a person types. */
const TYPED = new Set(['lib/daemon/cli/kit/typed-secret.ts'])

const sources = [...new Bun.Glob('{lib,agents,db,deploy}/**/*.ts').scanSync(ROOT), 'daemon.ts', 'hub.ts']
  // The pages run in a browser.
  .filter(path => !/^lib\/web\/.+\//.test(path) && !TYPED.has(path))
  .map(path => ({ path, text: readFileSync(join(ROOT, path), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '') }))

const STREAM = /\b(?:body|stdout|stderr|stdin|readable|content|stream\(\))!?$/
const WHOLE =
  /\b(?:stdout|stderr)!?\.(?:text|json|bytes|blob|arrayBuffer|pipeTo|pipeThrough)\(|readableStreamTo[A-Z]|new Response\(\w+\.(?:stdout|stderr)/

/** What a file does with streams that belongs into one of `READERS`. */
function offences(text: string): string[] {
  const loops = [...text.matchAll(/for await \([^;]*? of ([^\n]*)\) ?(?:\{|[\w])/g)].map(([, over]) => over!)
  const streams = [...text.matchAll(/\b(\w+)\??: ReadableStream</g)].map(([, name]) => name!)
  return [
    ...loops.filter(over => STREAM.test(over) || streams.includes(over)).map(over => `for await over ${over}`),
    ...(text.match(/getReader\(/g) ?? []),
    ...(text.match(WHOLE) ?? []),
  ]
}

test('no loop over a stream is outside of the bounded readers', () => {
  expect(sources.length).toBeGreaterThan(300)
  const found = sources.flatMap(({ path, text }) =>
    path in READERS ? [] : offences(text).map(offence => `${path}: ${offence}`),
  )
  expect(found).toEqual([])
})

test('the search finds what it is for', () => {
  const bad = [
    'for await (const chunk of child.stdout) {',
    'for await (const chunk of request.body) take(chunk)',
    'function f(source: ReadableStream<Uint8Array>) { for await (const part of source) {} }',
    'const reader = stream.getReader()\nfor (;;) await reader.read()',
    'const said = await group.child.stderr.text()',
    'await Bun.readableStreamToText(x)',
    'await new Response(child.stdout).text()',
  ]
  for (const text of bad) expect([text, offences(text).length > 0]).toEqual([text, true])
  expect(offences('for await (const chunk of chunksIn(child.stdout)) {')).toEqual([])
})

test('two files start processes with pipes: one the groups of all agents, one the trial of a sandbox', () => {
  const spawning = sources.filter(({ text }) => /Bun\.spawn\(|child_process/.test(text)).map(({ path }) => path)
  expect(spawning.sort()).toEqual([
    'lib/agent/commands/processes.ts',
    'lib/agent/sandbox-trial.ts',
    // Without pipes.
    'lib/daemon/cli/machine/dashboard.ts',
  ])
})

/** Calls `work` and returns how often the event loop turned meanwhile. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isOver = false
  const count = () => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  await work()
  isOver = true
  return turns
}

/** A stream that has `count` chunks at once. */
function ready(count: number, bytes: number): ReadableStream<Uint8Array> {
  const chunk = new Uint8Array(bytes)
  return new ReadableStream({
    pull(controller) {
      if (count-- > 0) controller.enqueue(chunk)
      else controller.close()
    },
  })
}

test('a stream that always has data lets the event loop turn', async () => {
  const read = async () => {
    for await (const _ of chunksIn(ready(1_000, 65_536))) {
      // Only read.
    }
  }
  expect(await turnsDuring(read)).toBeGreaterThan(10)
  expect(await turnsDuring(() => Promise.all([read(), read(), read()]))).toBeGreaterThan(30)
})

test('a text that is read keeps no more than it may, and says once that there is more', async () => {
  let more = 0
  const text = await textIn(ready(100, 1_000), { most: 1_500, onMore: () => more++ })
  expect([text.length, more]).toEqual([1_500, 1])
  expect(await textIn(ready(3, 500), { most: 1_500, onMore: () => more++ })).toHaveLength(1_500)
  expect(more).toBe(1)
})

test('all that takes turns shares the time of a turn', async () => {
  const held: number[] = []
  let began = performance.now()
  let isOver = false
  const turn = () => {
    const now = performance.now()
    held.push(now - began)
    began = now
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  let steps = 0
  const work = async () => {
    for (let n = 0; n < 200; n++) {
      for (const until = performance.now() + 0.5; performance.now() < until; );
      steps++
      await endTurn()
    }
  }
  await Promise.all(Array.from({ length: 8 }, work))
  isOver = true
  // 800 ms of work by eight: turns of 10 ms together are about 60, turns of 10 ms each would be 10.
  expect([steps, held.length > 25]).toEqual([1_600, true])
})
