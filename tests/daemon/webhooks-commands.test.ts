// `webhooks`: an admin adds one, sees what became of its messages, sends one again and removes it. The receiver is a real
// server, which checks signatures with the specification's own library.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { until } from '../support/bounded.ts'
import { command, files, killProcesses } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { ADMIN_PASSWORD, startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
const home = folder()
/** The ids of the messages that came, with whether they were signed by the secret. */
const got: { id: string; signed: boolean }[] = []
let signedBy = ''
let status = 200
const receiver = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const text = await request.text()
    let signed = true
    try {
      new Webhook(signedBy).verify(text, Object.fromEntries(request.headers))
    } catch {
      signed = false
    }
    got.push({ id: request.headers.get('webhook-id')!, signed })
    return new Response(null, { status })
  },
})
const url = `http://127.0.0.1:${receiver.port}/hook`

beforeAll(async () => {
  hub = await startTestHub()
  const signIn = await run(`login admin --hub ${hub.url}`, `${ADMIN_PASSWORD}\n`)
  expect(signIn.code).toBe(0)
})
afterAll(async () => {
  await hub.stop()
  await receiver.stop(true)
  killProcesses()
})

const run = (line: string, stdin = '') => command(line.split(' '), { home, stdin })

async function says(line: string, stdin?: string): Promise<string> {
  const { code, stdout, stderr } = await run(line, stdin)
  if (code !== 0) throw new Error(`${line}: ${code} ${stderr}`)
  return stdout
}

/** Makes an entry of the audit log that the webhook is told. */
const happen = () => says(`publish ${files({ 'team.yml': teamOf(++version) })}`)
let version = 0
const teamOf = (patch: number) => `name: '@admin/told'
version: 1.0.${patch}
phases: [{ name: a, agent: exec, commands: [{ name: a, run: 'true' }] }]
`

test('a webhook is added, told, asked what came of its messages, and removed', async () => {
  expect((await run('webhooks')).stderr).toBe('none\n')
  const refused = await run('webhooks add http://user:pw@127.0.0.1/hook')
  expect([refused.code, refused.stderr.includes('must not contain credentials')]).toEqual([2, true])
  expect((await run(`webhooks add ${url} --event run.done`)).stderr).toContain('one of run.completed')

  const made = await run(`webhooks add ${url} --event audit.*`)
  expect([made.code, made.stderr]).toEqual([
    0,
    expect.stringMatching(/^this is shown once: the secret of webhook \S+ of/),
  ])
  signedBy = made.stdout.trim()
  expect(await says('webhooks')).toMatch(/^http:\S+\/hook +audit\.\* +of admin +[0-9a-f-]{36}$/m)
  expect(await says('webhooks list')).not.toContain(signedBy)

  await happen()
  await until(async () => got.some(({ signed }) => signed) || undefined, 'the message', 30_000)
  const { deliveries } = await until(
    async () => {
      const found = JSON.parse(await says(`webhooks deliveries ${url} --json`))
      return found.deliveries.every((each: { state: string }) => each.state === 'delivered') ? found : undefined
    },
    'the deliveries',
    30_000,
  )
  const [{ id }] = deliveries
  expect(await says('webhooks deliveries')).toMatch(new RegExp(`^audit\\.\\S+ .* delivered, 200 .* ago +${id}$`, 'm'))

  expect(got.filter(each => each.id === id)).toEqual([{ id, signed: true }])
  expect((await run(`webhooks redeliver ${id}`)).stderr).toBe(`message ${id} is sent again\n`)
  const again = async () => got.filter(each => each.id === id)[1]
  expect(await until(again, 'the message again', 30_000)).toEqual({ id, signed: true })

  const absent = await run('webhooks redeliver msg_none')
  expect([absent.code, absent.stderr]).toEqual([2, expect.stringContaining('has no message msg_none that has ended')])
  expect((await run(`webhooks remove ${url}`)).stderr).toContain('Add --yes to say so.')
  expect((await run(`webhooks remove ${url} --yes`)).stderr).toBe(`removed the webhook to ${url}\n`)
  expect((await run(`webhooks remove ${url} --yes`)).stderr).toContain(`there is no webhook ${url}`)
}, 60_000)

test('a refused message says so; a secret of the receiver is read from stdin', async () => {
  status = 410
  signedBy = `whsec_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64')}`
  const made = await run(`webhooks add ${url} --event audit.* --own-secret`, `${signedBy}\n`)
  expect([made.code, made.stdout, made.stderr]).toEqual([0, '', expect.stringMatching(/^added webhook \S+ to realm/)])
  const before = got.length
  await happen()
  await until(async () => got.slice(before).some(({ signed }) => signed) || undefined, 'the message', 30_000)
  const said = await until(
    async () => {
      const text = await says('webhooks deliveries')
      return text.includes('failed after') ? text : undefined
    },
    'the outcome',
    30_000,
  )
  expect(said).toMatch(/ failed after an attempt: the receiver answered 410 /)
}, 60_000)

test('a webhook is named by the beginning of its id, and taken over', async () => {
  const [{ id }] = JSON.parse(await says('webhooks --json')).webhooks
  expect((await run(`webhooks take-over ${id.slice(0, 8)}`)).stderr).toBe(`the webhook to ${url} belongs to admin\n`)
}, 60_000)
