// What a file that fails says of the receipt of a `once` entry, in an agent whose author knows nothing of receipts; and
// secrets that an agent learns while it works.

import { afterAll, describe, expect, test } from 'bun:test'
import { agent, Type } from '../../lib/agent/cadre.ts'
import { testContext } from '../support/context.ts'
import { outcomeOf } from '../support/outcome.ts'

const received: string[] = []
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch({ method }) {
    received.push(method)
    return new Response('taken')
  },
})
afterAll(() => server.stop(true))

const Settings = Type.Object({ url: Type.String() })
const Entry = Type.Object({ name: Type.String(), file: Type.String() })
const tickets = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Opens tickets.',
  settings: Settings,
  actions: {
    read_first: {
      direction: 'target',
      effect: 'once',
      entry: Entry,
      async run({ file }, context) {
        const body = await context.read(file)
        await context.fetch(context.settings.url, { method: 'POST', body })
        return { text: 'opened' }
      },
    },
    send_first: {
      direction: 'target',
      effect: 'once',
      entry: Entry,
      async run({ file }, context) {
        await context.fetch(context.settings.url, { method: 'POST', body: 'a ticket' })
        await context.fetch(context.settings.url, { method: 'POST', body: await context.read(file) })
        return { text: 'opened' }
      },
    },
  },
})

const outcome = (action: string, file: string) =>
  outcomeOf({
    agent: tickets,
    name: 'tickets',
    settings: { url: server.url.href },
    phase: { action, target_entries: [{ name: 'one', file }] },
  })

describe('a `once` entry', () => {
  test.each(['missing.md', '../secret.md', '.'])('whose file %s cannot be read fails, and asks nobody', async file => {
    received.length = 0
    const { state, error } = await outcome('read_first', file)
    expect(state).toBe('failed')
    expect(error!.message).toContain(file)
    expect(received).toEqual([])
  })

  test('that sent something before its file failed waits for a person', async () => {
    received.length = 0
    expect(await outcome('send_first', 'missing.md')).toMatchObject({ state: 'awaiting_input' })
    expect(received).toEqual(['POST'])
  })
})

describe('before anything left, the error says so', () => {
  const settings = { url: server.url.href }
  test.each([
    ['read', (at: ReturnType<typeof begin>) => at.read('missing.md')],
    ['folder', (at: ReturnType<typeof begin>) => at.folder('missing')],
    ['write', (at: ReturnType<typeof begin>) => at.write('../out', 'text')],
  ])('of %s', async (_, work) => {
    await expect(work(begin())).rejects.toMatchObject({ sent: 'no' })
  })

  test.each([
    ['fetch', (at: ReturnType<typeof begin>) => at.fetch(settings.url)],
    ['vet', (at: ReturnType<typeof begin>) => at.vet(settings.url)],
    ['start', async (at: ReturnType<typeof begin>) => at.start(['true'], { cwd: '/', env: { ...at.env } }).close()],
  ])('and no more once there was a %s', async (_, call) => {
    const context = begin()
    await call(context)
    await expect(context.read('missing.md')).rejects.toMatchObject({ code: 'not_found', sent: undefined })
  })

  const begin = () => testContext({ settings, effect: 'once' }).context
})

describe('a value that is concealed', () => {
  const token = 'tok/9f8e7d+6c5b4a'

  test('is masked in lines, and in bytes whose masker was made before', () => {
    const told: string[] = []
    const { context, lines } = testContext({ conceal: value => told.push(value) })
    const stream = context.mask()
    context.log(`before ${token}`)
    context.conceal(token)
    for (const said of [token, encodeURIComponent(token), btoa(`user:${token}`)]) context.log(`said ${said}`)
    expect(lines[0]).toContain(token)
    expect(lines.slice(1)).toEqual(['said ***', 'said ***', expect.stringMatching(/^said \S{6,9}\*\*\*\S?=*$/)])
    const bytes = [...Buffer.from(`said ${token}.`)].map(byte => stream.push(Uint8Array.of(byte)))
    expect(Buffer.concat([...bytes, stream.end()]).toString()).toBe('said ***.')
    expect(told).toEqual([token])
  })

  test('that is empty masks nothing', () => {
    const { context, lines } = testContext()
    context.conceal('')
    context.log('as it is')
    expect(lines).toEqual(['as it is'])
  })
})

test('says what it waits for: masked, and until a time that is one', () => {
  const waits: [string, Date | undefined][] = []
  const { context } = testContext({
    secrets: ['canary-of-the-wait'],
    waits: (reason, until) => {
      waits.push([reason, until])
      return () => void waits.pop()
    },
  })
  const at = Date.parse('2026-01-01T00:00:00Z')
  context.waiting('canary-of-the-wait, and more')
  context.waiting('b', at)
  const last = context.waiting('c', new Date(at))
  expect(waits).toEqual([
    ['***, and more', undefined],
    ['b', new Date(at)],
    ['c', new Date(at)],
  ])
  last[Symbol.dispose]()
  expect(waits).toHaveLength(2)
  expect(() => context.waiting('d', Number.NaN)).toThrow('until must be a valid time, got NaN')
})

test('knows its name, and where it is called', () => {
  const of = (agent: string, action?: string) => testContext({ agent, ...(action && { action }) }).context
  expect(of('pages@eu', 'get_page')).toMatchObject({ agent: 'pages@eu', callName: 'pages@eu.get_page' })
  expect(of('pages')).toMatchObject({ agent: 'pages', callName: 'pages' })
})
