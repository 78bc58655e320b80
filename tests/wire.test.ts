// What daemon and command line make of replies: they take what the wire promises, and say of everything else what is
// wrong with it and who sent it.

import { afterAll, expect, test } from 'bun:test'
import { createClient } from '../lib/daemon/cli/backend/home-client.ts'
import { makeHome } from '../lib/daemon/home/home.ts'
import { HubClient } from '../lib/daemon/link/hub-client.ts'
import { CadreError } from '../lib/error.ts'
import { Whoami } from '../lib/wire/calls/auth.ts'
import { Heartbeat, Poll } from '../lib/wire/calls/daemon-link.ts'
import { ListRealms } from '../lib/wire/calls/realms.ts'
import { GetRun } from '../lib/wire/calls/runs.ts'
import { ListSettings } from '../lib/wire/calls/settings.ts'
import { ListWorkspaces } from '../lib/wire/calls/workspaces.ts'
import { ackedOf, gap } from '../lib/wire/protocol.ts'
import { waitText } from '../lib/wire/records/words.ts'
import { folder } from './support/folder.ts'

let status = 200
let answer: unknown
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: () => (answer instanceof Response ? answer : Response.json(answer, { status })),
})
afterAll(() => server.stop(true))

const origin = server.url.origin
const hub = new HubClient(origin, 'none')
const home = folder()
makeHome(home)
const daemon = createClient(home, origin)
const DAEMON_ID = crypto.randomUUID()

/** What the call throws when it is answered with `given`. */
async function refusal(given: unknown, work: () => Promise<unknown>, code = 200): Promise<CadreError> {
  answer = given
  status = code
  const thrown = await work().then(
    () => null,
    (error: unknown) => error,
  )
  expect(thrown).toBeInstanceOf(CadreError)
  return thrown as CadreError
}

const beat = () => hub.call(Heartbeat, { daemon_id: DAEMON_ID })
const poll = () => hub.call(Poll, { daemon_id: DAEMON_ID })

test.each([
  ['a foreign JSON', { status: 'fine' }],
  ['a list', [1, 2]],
  ['null', null],
  ['an error of another form', { ok: false, error: 'no' }],
  ['an error with a code that no hub has', { ok: false, error: { code: 'teapot', message: 'short and stout' } }],
])('%s with 200 is not from a hub', async (_, foreign) => {
  const { code, message } = await refusal(foreign, beat)
  expect(code).toBe('unavailable')
  expect(message).toBe(`${origin}/v1/daemons/heartbeat answered 200, but not as a hub does; check CADRE_HUB_URL`)
})

test.each([502, 503, 504])('%d of a proxy says where to look, and not at the address', async status => {
  const { code, message } = await refusal('', beat, status)
  expect(code).toBe('unavailable')
  expect(message).toBe(
    `a proxy before ${origin}/v1/daemons/heartbeat answered ${status}: it reaches no hub that is ready; ask each hub behind it for /ready, which says why`,
  )
})

/** What a hub replies to a heartbeat. */
const heard = {
  ...{ status: 'online', server_time: 1, next_ms: 1, dispatch_public_key: '', dispatch_keys: [] },
  ...{ acl_version: '1', teams_version: '1' },
}

test('a success with something else in it names the call and what is wrong', async () => {
  const { code, message } = await refusal({ ok: true, data: { ...heard, dispatch_keys: [{}] } }, beat)
  expect(code).toBe('unavailable')
  expect(message).toStartWith(`${origin}/v1/daemons/heartbeat replied with success, but not in the form of this call: `)
  expect(message).toContain('/dispatch_keys/0/kid is required')
  expect(message).toEndWith('; check that the hub there is of the same version as this program')
  const empty = await refusal({ ok: true }, () => hub.call(Whoami, {}))
  expect(empty.message).toContain(`${origin}/v1/auth/whoami`)
})

test.each([
  [3, 'required; check'],
  [4, 'required; and 1 more; check'],
])('of %i things that are wrong, three are named', async (count, end) => {
  const rest = Object.entries(heard).slice(count)
  const { message } = await refusal({ ok: true, data: Object.fromEntries(rest) }, beat)
  expect(message.match(/ is required/g)).toHaveLength(3)
  expect(message).toContain(end)
})

test('what a newer hub adds is left alone, and a kind of job that this daemon does not know is still a job', async () => {
  const job = { job_id: 'j', lease_id: 'l', attempt: 1, lease_until: 1, run_id: 'r', payload: {}, kind: 'levitate' }
  answer = { ok: true, data: { jobs: [{ ...job, color: 'red' }], weather: 'fine' } }
  expect((await poll()).jobs).toMatchObject([job])
})

test('an error that the hub meant keeps its code, its details and its wait', async () => {
  const details = [{ path: '/limit', message: 'must be <= 100' }]
  const error = { code: 'rate_limited', message: 'slowly', details }
  answer = Response.json({ ok: false, error }, { status: 429, headers: { 'retry-after': '3' } })
  const thrown = await refusal(answer, () => hub.call(ListRealms, {}))
  expect(thrown).toMatchObject({ code: 'rate_limited', message: 'slowly', details, retryAfter: 3 })
})

test('a daemon’s replies are held against the wire, too', async () => {
  const asked = () => daemon.call(GetRun, { run_id: 'x' })
  const record = await refusal({ ok: true, data: { run_id: 'x', state: 'floating' } }, asked)
  expect(record.code).toBe('unavailable')
  expect(record.message).toContain(`${origin}/v1/runs/get replied with success, but not in the form of this call`)
  expect(record.message).toContain('check that the daemon there is of the same version')
  const foreign = await refusal({ hello: 1 }, () => daemon.call(ListSettings, {}))
  expect(foreign.message).toContain(`${origin}/v1/settings/list answered 200, but not as a daemon does`)
  const envelope = await refusal({ type: 'ok', payload: { data: { workspaces: 3 } } }, () =>
    daemon.call(ListWorkspaces, {}),
  )
  expect(envelope.message).toContain('/workspaces must be a list')
  const said = { type: 'error', payload: { code: 'not_found', message: 'there is no run x' } }
  expect(await refusal(said, () => daemon.call(ListWorkspaces, {}), 404)).toMatchObject({
    code: 'not_found',
    message: 'there is no run x',
  })
})

test('an event of another version ends a stream with an error that names it', async () => {
  const lines = (event: string, data: unknown) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
  const stream = (text: string) => new Response(text, { headers: { 'content-type': 'text/event-stream' } })
  const read = () => Array.fromAsync(daemon.events('x', new AbortController().signal))
  expect((await refusal(stream(lines('run', { run_id: 'x' })), read)).message).toContain(
    '/v1/runs/stream replied with success',
  )
  expect((await refusal(stream(lines('firework', {})), read)).message).toContain('sent an event firework')
  answer = stream(lines('log', { run_id: 'x', lines: [{ seq: 1, phase: null, at: 1, stream: 'log', text: 'a' }] }))
  expect(await read()).toMatchObject([{ event: 'log', data: { lines: [{ text: 'a' }] } }])
})

test('a gap is told by the field that it carries, whatever its message says', () => {
  expect(ackedOf(gap(41, 50))).toBe(41)
  expect(ackedOf(gap(0, 2))).toBe(0)
  expect(ackedOf(new CadreError('conflict', 'mind the gap'))).toBeNull()
  const details = [{ path: '/acked_seq', message: '7' }]
  expect(ackedOf(new CadreError('conflict', 'said otherwise', { details }))).toBe(7)
  const fresh = [{ path: '/acked_seq', message: 'the eighth change is due', value: 8 }]
  expect(ackedOf(new CadreError('conflict', 'said otherwise', { details: fresh }))).toBe(8)
  expect(ackedOf(new CadreError('invalid_request', 'gap', { details }))).toBeNull()
  expect(ackedOf(new Error('gap'))).toBeNull()
})

test('the end of a wait has its date when it is of another day', () => {
  const now = Date.parse('2026-03-01T09:00:00Z')
  const text = (until: number | null) => waitText({ reason: 'HTTP 503', until }, now)
  expect(text(null)).toBe('HTTP 503')
  expect(text(now + 3_723_000)).toBe('HTTP 503, until 10:02:03 UTC')
  expect(text(now + 2 * 86_400_000)).toBe('HTTP 503, until 2026-03-03 09:00 UTC')
})
