// What people are told of writes that were in doubt, by the command line, when the process of the run has long ended.

import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const AGENT = `import { AgentError, agent, Type } from 'cadre'
export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Tickets of a vendor that may answer before it has written.',
  settings: Type.Object({ base_url: Type.String() }),
  actions: {
    create: {
      direction: 'target',
      effect: 'once',
      entry: Type.Object({ name: Type.String() }),
      async run(_, context) {
        const reply = await context.fetch(context.settings.base_url, { method: 'POST', body: context.key })
        if (!reply.ok) throw new AgentError('HTTP ' + reply.status, { retryable: true })
        const id = await reply.text()
        return { text: id, data: {}, external: { id, url: context.settings.base_url + id } }
      },
      async find(_, context) {
        const reply = await context.fetch(context.settings.base_url + context.key)
        const ids = (await reply.json()) as string[]
        if (ids.length === 0) return null
        return ids.map(id => ({ text: id, data: {}, external: { id, url: context.settings.base_url + id } }))
      },
    },
  },
})
`

/** Answers 504 to the first request, and carries it out when `land` is called. */
function lateServer() {
  const tickets: { id: string; key: string }[] = []
  let late: (() => void) | undefined
  let count = 0
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const key = request.method === 'POST' ? await request.text() : new URL(request.url).pathname.slice(1)
      if (request.method === 'GET') return Response.json(tickets.filter(each => each.key === key).map(({ id }) => id))
      const ticket = { id: `T-${++count}`, key }
      if (count > 1) {
        tickets.push(ticket)
        return new Response(ticket.id)
      }
      late = () => tickets.push(ticket)
      return new Response('', { status: 504 })
    },
  })
  return { url: `${server.url}`, tickets, land: () => late!(), [Symbol.asyncDispose]: () => server.stop(true) }
}

async function begin(url: string, retry: string) {
  const home = folder()
  mkdirSync(join(home, 'agents'))
  writeFileSync(join(home, 'agents/tickets.ts'), AGENT)
  const path = files({
    'team.yml': `name: "@local/tickets"
version: 1.0.0
phases:
  - { name: make, agent: tickets, action: create${retry}, target_entries: [{ name: one }] }
`,
  })
  writeFileSync(join(home, 'settings.yml'), `agents: { tickets: { base_url: "${url}" } }\n`, { mode: 0o600 })
  const say = async (...args: string[]) => (await command(args, { home })).stdout
  return { path, home, say }
}

test('why says that a write is not yet confirmed, and why --ask names both, with links', async () => {
  await using server = lateServer()
  const { path, home, say } = await begin(server.url, ', retry: { attempts: 2, backoff: 1ms }')
  expect((await command(['run', path], { home })).code).toBe(0)
  expect(await say('why', 'last')).toContain(
    `make/one (${server.url}T-2), which arrived, not yet confirmed to be there only once`,
  )
  server.land()
  const both = `make/one (${server.url}T-2), which arrived twice: also ${server.url}T-1`
  expect(await say('why', 'last', '--ask')).toContain(both)
  expect(await say('why', 'last')).toContain(both)
  expect(await say('show', 'last')).toMatch(
    new RegExp(`make/one +arrived twice: also ${server.url}T-1 +${server.url}T-2`),
  )
  expect(server.tickets).toHaveLength(2)
}, 60_000)

test('why names the command that asks, and that says what could not be asked', async () => {
  const server = lateServer()
  const { path, home, say } = await begin(server.url, ', retry: { attempts: 2, backoff: 1ms }')
  expect((await command(['run', path], { home })).code).toBe(0)
  const { run_id } = JSON.parse(await say('show', 'last', '--json'))
  expect(await say('why', 'last')).toContain(`why ${run_id} --ask`)
  await server[Symbol.asyncDispose]()
  expect(await say('why', 'last', '--ask')).toMatch(/Not asked: make\/one \([^)]*(refused|connect)/i)
}, 60_000)

test('a write that is presumed absent is found by why --ask, and a resume does not send it again', async () => {
  await using server = lateServer()
  const { path, home, say } = await begin(server.url, '')
  expect((await command(['run', path], { home })).code).toBe(1)
  expect(await say('why', 'last')).toContain('make/one, which does not seem to have arrived')
  server.land()
  expect(await say('why', 'last', '--ask')).toContain(`Written outside: make/one (${server.url}T-1)`)
  const { run_id } = JSON.parse(await say('show', 'last', '--json'))
  expect((await command(['resume', run_id], { home })).code).toBe(0)
  expect(server.tickets).toHaveLength(1)
}, 60_000)
