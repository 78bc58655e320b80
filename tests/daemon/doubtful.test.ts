// What a person is told of writes to other systems: of which item each is, and what to look for where the reply was lost.

import { expect, test } from 'bun:test'
import { command, files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const EACH = `name: "@local/post-each"
version: 1.0.0
inputs: [{ name: token, type: string, secret: true }]
phases:
  - name: each
    type: map
    items: [ada, grace]
    key: "{{ item }}"
    team: ./post
    inputs: { name: "{{ item }}", token: "{{ inputs.token }}" }
`
const post = (server: URL, more: string) => `name: "@local/post"
version: 1.0.0
inputs: [{ name: name, type: string }, { name: token, type: string, secret: true }]
phases:
  - name: post
    agent: http
    target_entries:
      - { name: reply.json, url: "${server}of/{{ inputs.token }}/{{ inputs.name }}?hush=hush-1", body: x${more} }
`

/** Answers 201 with an address for ada, and loses the reply for grace. Keeps the keys of the requests. */
function recorder() {
  const keys: (string | null)[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ url, headers }) => {
      if (!url.includes('/grace')) return new Response('{}', { status: 201, headers: { location: '/made/7' } })
      keys.push(headers.get('idempotency-key'))
      return new Response('lost', { status: 502 })
    },
  })
  return { url: server.url, keys, [Symbol.asyncDispose]: () => server.stop(true) }
}

test('writes are told by the key of their item, and a review says what was sent, and of which run', async () => {
  await using server = recorder()
  const home = folder()
  const say = async (...args: string[]) => (await command(args, { home })).stdout
  const path = files({ 'team.yml': EACH, 'post/team.yml': post(server.url, '') })
  expect((await command(['run', path, '-i', 'token=hidden-token'], { home })).code).toBe(3)

  const made = `${server.url}made/7`
  expect(await say('why', 'last')).toContain(
    `Written outside: each/grace/post/reply.json, which may or may not have arrived; each/ada/post/reply.json (${made}).\n`,
  )
  const shown = (await say('show', 'last')).split('\nwritten outside\n')[1]!.split('\n')
  expect(shown.slice(0, 2).map(line => line.trim().split(/ {2,}/))).toEqual([
    ['each/grace/post/reply.json', 'may or may not have arrived'],
    ['each/ada/post/reply.json', 'arrived', made],
  ])

  const { run_id } = JSON.parse(await say('show', 'last', '--json'))
  const asked = await say('reviews')
  const [key] = server.keys
  expect(asked).toContain(`\n  of @local/post, in run ${run_id} of @local/post-each\n`)
  expect(asked).toContain(`\n  sent: POST ${server.url}of/***/grace, idempotency-key ${key}\n`)
  expect(asked).not.toContain('hidden-token')
  expect(asked).not.toContain('hush-1')
}, 60_000)

test('a review names the key that the entry itself sends', async () => {
  await using server = recorder()
  const home = folder()
  const headers = ', headers: { Idempotency-Key: "for-{{ inputs.name }}" }'
  const path = files({ 'team.yml': post(server.url, headers) })
  expect((await command(['run', path, '-i', 'name=grace', '-i', 'token=hidden-token'], { home })).code).toBe(3)
  expect(server.keys).toEqual(['for-grace'])
  const { stdout } = await command(['reviews'], { home })
  expect(stdout).toContain(', idempotency-key for-grace\n')
  expect(stdout).toContain('\n  of @local/post\n')
}, 60_000)

test('a value that a phase completed by hand lacks is given by repeating that phase, which sends nothing again', async () => {
  await using server = recorder()
  const home = folder()
  const say = async (...args: string[]) => (await command(args, { home })).stdout
  const output = 'outputs: [{ name: status, type: number, value: "{{ phases.post.data.status }}" }]\n'
  const sub = (url: URL) => post(url, '') + output
  const path = files({ 'team.yml': EACH.replace('[ada, grace]', '[grace]'), 'post/team.yml': sub(server.url) })
  const token = ['-i', 'token=hidden-token']
  expect((await command(['run', path, ...token], { home })).code).toBe(3)
  const decided = await command(['decide', 'last', 'complete'], { home })
  expect(decided.stderr).toContain('completed post, without data and files, although output status reads its result\n')

  const { run_id } = JSON.parse(await say('show', 'last', '--json'))
  const why = await say('why', 'last')
  expect(why).toContain('No such key: status')
  expect(why).toContain(
    '\nA person completed phase post by hand, and its result is read there: repeat the phase, and give its data with --values.\n',
  )
  expect(why).not.toContain('correct team.yml')
  expect(why).toEndWith(` resume ${run_id} --from each\n`)
  expect((await command(['resume', run_id, '--from', 'each', ...token], { home })).code).toBe(3)
  const values = ['--values', '{"status":201}']
  expect((await command(['decide', 'last', 'complete', ...values], { home })).code).toBe(0)
  expect(server.keys.length).toBe(1)
}, 60_000)

test('so it is where a phase reads the value', async () => {
  await using server = recorder()
  const home = folder()
  const tell = `  - { name: tell, agent: exec, depends_on: [post], env: { S: "{{ phases.post.data.status }}" }, commands: [{ name: c, run: "true" }] }\n`
  const path = files({ 'team.yml': post(server.url, '') + tell })
  const inputs = ['-i', 'name=grace', '-i', 'token=hidden-token']
  expect((await command(['run', path, ...inputs], { home })).code).toBe(3)
  expect((await command(['decide', 'last', 'complete'], { home })).stderr).toContain(
    'although phase tell reads its result',
  )
  expect((await command(['why', 'last'], { home })).stdout).toMatch(
    /\nA person completed phase post by hand, .*\n(.*\n)+.* resume \S+ --from post\n$/,
  )
}, 60_000)

test('the plan of a resume says that a person is asked about a command, which nothing can look up', async () => {
  const home = folder()
  const path = files({
    'team.yml': `name: "@local/unknown"
version: 1.0.0
phases: [{ name: unk, agent: exec, commands: [{ name: c, run: "exit 1", effect: once }] }]
`,
  })
  expect((await command(['run', path], { home })).code).toBe(3)
  await command(['cancel', 'last'], { home })
  const plan = await command(['resume', 'last', '--plan'], { home })
  expect(plan.stdout).toContain('\nA person is asked before the command runs again: unk\n')
  expect(plan.stdout).not.toContain('Looked up')
}, 60_000)
