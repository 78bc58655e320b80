// Run by a test in a process of its own: puts a file of so many MiB into a store (another process) and fetches it again;
// prints as JSON whether it came back, and the memory it took, in MiB.

import { join } from 'node:path'
import objectstore from '../../agents/objectstore.ts'
import { createContext } from '../../lib/agent/context.ts'
import { createRedactor } from '../../lib/redact.ts'
import { ACCESS, BUCKET } from './objectstore.ts'

const [, , at = '', megabytes = '1'] = process.argv
const store = Bun.spawn([process.execPath, join(import.meta.dir, 'objectstore.ts')], {
  stdout: 'pipe',
  stderr: 'inherit',
})
const { value } = await store.stdout.getReader().read()
const endpoint = new TextDecoder().decode(value).trim()

const file = Bun.file(join(at, 'large')).writer()
for (let n = 0; n < Number(megabytes); n++) {
  file.write(
    crypto
      .getRandomValues(new Uint8Array(2 ** 16))
      .toHex()
      .repeat(8),
  )
  await file.flush()
}
await file.end()
Bun.gc(true)

const before = process.memoryUsage.rss()
let peak = before
const watch = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss())
}, 5)
const context = createContext({
  settings: { ...ACCESS, endpoint },
  network: { allow: [], literalOrigins: [] },
  redactor: createRedactor([]),
  signal: new AbortController().signal,
  log: line => console.error(line),
  stateDir: at,
  workspace: at,
  outside: false,
  key: 'key',
  attempt: 1,
  run: { id: '0190', name: null, team: '@local/team', url: null },
  phase: { name: 'phase' },
  effect: 'idempotent',
})
await objectstore.target!.run({ name: 'x', ref: `${BUCKET}/large`, file: 'large' }, context)
await objectstore.source!.run({ name: 'back', ref: `${BUCKET}/large` }, context)
clearInterval(watch)
store.kill()
await store.exited

const hash = async (path: string) => {
  const hasher = new Bun.CryptoHasher('sha256')
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk)
  return hasher.digest('hex')
}
const equal = (await hash(join(at, 'large'))) === (await hash(join(at, 'files/phase/back')))
const mebibytes = (bytes: number) => Math.round(bytes / 2 ** 20)
console.log(JSON.stringify({ equal, grown: mebibytes(peak - before), peak: mebibytes(peak) }))
