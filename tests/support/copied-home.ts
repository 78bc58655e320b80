// A vendor that counts what is written to it, and a home whose run writes to it. The home can be copied in the middle of
// the run, because the vendor holds back its replies until it is told to give them.

import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { until } from './bounded.ts'
import { folder } from './folder.ts'

export interface CountingVendor {
  url: string
  /** How often each thing was written, by its name. */
  written(): Record<string, number>
  /** Holds back the replies to writes of things whose names begin so. */
  hold(begin: string): void
  /** Gives the replies that are held back. */
  release(): void
  /** Resolves when a thing was written. */
  wrote(name: string): Promise<unknown>
  stop(): Promise<void>
}

export function countingVendor(): CountingVendor {
  const made: { name: string; key: string | null }[] = []
  let held: string | null = null
  let free = Promise.withResolvers<void>()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      const name = pathname.slice(1)
      if (request.method === 'GET') {
        const found = made.find(each => each.key === searchParams.get('key'))
        return found ? Response.json({ name: found.name }) : new Response('none', { status: 404 })
      }
      made.push({ name, key: request.headers.get('idempotency-key') })
      if (held !== null && name.startsWith(held)) await free.promise
      return Response.json({ name }, { status: 201 })
    },
  })
  const written = () => {
    const counts: Record<string, number> = {}
    for (const { name } of made) counts[name] = (counts[name] ?? 0) + 1
    return counts
  }
  return {
    url: server.url.origin,
    written,
    hold(begin) {
      held = begin
      free = Promise.withResolvers()
    },
    release() {
      held = null
      free.resolve()
    },
    wrote: name => until(() => written()[name] !== undefined, `the write of ${name}`),
    stop: () => server.stop(true),
  }
}

/** An agent whose writes can be found again by their keys. */
const FINDS = `
import { agent, Type } from 'cadre'
export default agent({
  type: 'connector', version: '1.0.0', description: 'Writes things that can be found.',
  settings: Type.Object({}),
  target: {
    effect: 'once', entry: Type.Object({ name: Type.String(), url: Type.String() }),
    async run(entry, context) {
      const reply = await context.fetch(entry.url, { method: 'POST', headers: { 'idempotency-key': context.key } })
      if (!reply.ok) throw new Error('refused')
      return { text: 'written' }
    },
    async find(entry, context) {
      const reply = await context.fetch(entry.url + '?key=' + context.key)
      return reply.status === 404 ? null : { text: 'found' }
    },
  },
})
`

/** The same, but its vendor knows them by an id that it chooses for each. */
const CHOOSES = FINDS.replaceAll('context.key', 'id')
  .replace(
    'async run(entry, context) {',
    'async run(entry, context) {\n      const id = await context.identity(() => crypto.randomUUID())',
  )
  .replace(
    'async find(entry, context) {',
    'async find(entry, context) {\n      const id = await context.identity()\n      if (id === null) return null',
  )

/** A home with the agents `finds` and `chooses`. */
export function homeWithFinds(): string {
  const home = folder()
  mkdirSync(join(home, 'agents'))
  writeFileSync(join(home, 'agents', 'finds.ts'), FINDS)
  writeFileSync(join(home, 'agents', 'chooses.ts'), CHOOSES)
  return home
}

/** A team that writes things one after the other, with an agent that does it in a target entry. */
export function writer(
  agent: 'finds' | 'chooses' | 'http',
  { url }: Pick<CountingVendor, 'url'>,
  ...things: string[]
): string {
  const request = agent === 'http' ? ', method: POST, body: x' : ''
  const phases = things.map(
    (thing, at) => `  - name: ${thing}
    agent: ${agent}
    ${at === 0 ? '' : `depends_on: [${things[at - 1]}]`}
    target_entries: [{ name: it, url: "${url}/${thing}"${request} }]`,
  )
  return `name: "@local/writer"\nversion: 1.0.0\nphases:\n${phases.join('\n')}\n`
}

/**
 * Copies a home as `cp -r` does, while its daemon runs. Returns the copy. What comes and goes is left out: a daemon makes
 * the index of searches anew when it finds that its home is a copy.
 */
export function copyOf(home: string, to = join(folder(), 'copy')): string {
  mkdirSync(dirname(to), { recursive: true })
  cpSync(home, to, {
    recursive: true,
    preserveTimestamps: true,
    filter: from => !/(\.(tmp|draft|db-journal)|search\.db(-wal|-shm)?)$/.test(from),
  })
  return to
}
