// Messages of webhooks on an older copy: what may have been sent is not sent again unless somebody asks.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { CopiedHub, sqlitePlace } from '../support/older-copy.ts'

interface Message {
  id: string
  type: string
  run: string
}

const place = sqlitePlace('copied file')
const received: Message[] = []
let answer = 200
let hub: CopiedHub
let receiver: Bun.Server<unknown>

beforeAll(async () => {
  receiver = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const body = (await request.json()) as { type: string; data: { run_id: string } }
      received.push({ id: request.headers.get('webhook-id')!, type: body.type, run: body.data.run_id })
      return new Response(null, { status: answer })
    },
  })
  hub = await CopiedHub.start(place.database, { CADRE_WEBHOOK_ALLOW: '127.0.0.1' })
  const url = receiver.url.href
  await hub.ok('realms/add_webhook', { realm_id: hub.realm, url, events: ['run.completed'] })
  await hub.daemon('ada')
})
afterAll(async () => {
  await hub[Symbol.asyncDispose]()
  await receiver.stop(true)
})

const deliveries = async () => (await hub.ok('realms/webhook_deliveries', { realm_id: hub.realm })).deliveries
const ofRun = async (run: string) => (await deliveries()).find(({ subject }: { subject: string }) => subject === run)

test('a message that waited, and one about a run that is reported again, are unknown and not sent', async () => {
  answer = 503
  const waits = await hub.dispatch('waits')
  await until(async () => (await ofRun(waits))?.status === 503, 'an attempt that failed')
  await hub.leave('ada')
  const again = await hub.dispatch('again')
  await place.copy()
  answer = 200
  await hub.daemon('ada')
  await until(async () => (await ofRun(again))?.state === 'delivered', 'the message about the second run')
  const before = await ofRun(again)
  received.length = 0
  await hub.restore(place)
  await hub.completed([again])
  expect(await ofRun(waits)).toMatchObject({ state: 'unknown', next_at: null })
  expect(await ofRun(again)).toMatchObject({ state: 'unknown', id: before.id })
  await Bun.sleep(3_000)
  expect(received).toEqual([])

  await hub.ok('realms/redeliver_webhook', { realm_id: hub.realm, id: before.id })
  await until(() => received.length === 1, 'the message is sent')
  expect(received).toEqual([{ id: before.id, type: 'run.completed', run: again }])

  const after = await hub.dispatch('after')
  await until(() => received.some(({ run }) => run === after), 'a new event is sent')
}, 90_000)
