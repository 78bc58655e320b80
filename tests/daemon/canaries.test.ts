// Canaries: secrets in settings and in a secret input are sent down every way that a value can take — output of commands,
// results, errors, logs, prompts, events, items, names, outputs — and then looked for, raw and encoded, in every reply,
// every line the daemon said, and every byte of its home.

import { beforeAll, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { variantsOf } from '../support/variants.ts'

const INPUT = 'canary/of input+7c1d9e "x"'
const SETTING = 'canary-of-settings-5b2f8a'
const BUILT_IN = {
  wiki: { base_url: 'http://127.0.0.1:9', email: 'a@b.c', api_token: 'canary-wiki-1a2b3c' },
  metrics: { api_key: 'canary-metrics-4d5e6f', app_key: 'canary-metrics-7a8b9c' },
  helpdesk: { subdomain: 'x', email: 'a@b.c', api_token: 'canary-helpdesk-0d1e2f' },
  objectstore: { access_key_id: 'AKIDEXAMPLE', secret_access_key: 'canary-objects-3a4b5c' },
}
const CANARIES = [
  INPUT,
  SETTING,
  ...Object.values(BUILT_IN)
    .flatMap(settings => Object.values(settings))
    .filter(value => value.startsWith('canary')),
]

/** Gives its secret away wherever it can. */
const LEAKY = `
import { agent, AgentError, secret, Type } from 'cadre'
const entry = Type.Object({ name: Type.Optional(Type.String()), value: Type.Optional(Type.Any()), fail: Type.Optional(Type.Boolean()), message: Type.Optional(Type.String()) })
async function run({ name, value, fail }, context) {
  const { token } = context.settings
  context.log('has ' + token + ' and ' + value, { token, list: [token, { [token]: value }] })
  context.log(btoa('user:' + token) + ' ' + encodeURIComponent(String(value)))
  await context.fetch('http://127.0.0.1:9/' + token + '?q=' + encodeURIComponent(String(value)), { attempts: 1 }).catch(e => context.log(e.message))
  if (fail) throw new AgentError('refused ' + token, { hint: 'try ' + value, cause: new Error(token) })
  return { text: token, data: { token, value, deep: [[{ [token]: btoa(token) }]] }, external: { id: token, url: 'http://x/' + token } }
}
export default agent({
  type: 'connector', version: '1.0.0', description: 'Leaks.', settings: Type.Object({ token: secret() }),
  source: { effect: 'read', entry, run },
  target: { effect: 'once', entry, run },
  notify: { effect: 'once', entry, async run(entry, context) { throw new AgentError(context.settings.token + entry.message) } },
})
`

const TEAM = {
  'team.yml': `
name: "@local/leaks"
version: 1.0.0
inputs: [{ name: token, type: string, required: true, secret: true }]
outputs:
  - { name: direct, type: string, value: "{{ inputs.token }}" }
  - { name: nested, type: object, value: "{{ {'a': [inputs.token, phases.said.data], inputs.token: 1} }}" }
  - { name: below, type: object, value: "{{ phases.sub.data }}" }
phases:
  - name: said
    agent: exec
    commands:
      - name: c
        env: { T: "{{ inputs.token }}" }
        run: |
          echo "out $T"; echo "err $T" >&2; printf '%s' "$T" | base64; printf '%s' "$T" > "$CADRE_OUT/artifact"
          printf '{"a":["%s"],"b":{"c":"%s"}}' x "$(printf '%s' "$T" | base64)" > "$CADRE_RESULT"
          printf 'd=%s\\ne<<END\\n%s\\nEND\\n' "$T" "$T" > "$CADRE_OUTPUT"
  - { name: exits, agent: exec, on_failure: continue, commands: [{ name: c, env: { T: "{{ inputs.token }}" }, run: 'echo "$T" >&2; exit 1' }] }
  - { name: result, agent: exec, on_failure: continue, commands: [{ name: c, env: { T: "{{ inputs.token }}" }, run: 'printf "%s" "$T" > "$CADRE_RESULT"' }] }
  - { name: output, agent: exec, on_failure: continue, commands: [{ name: c, env: { T: "{{ inputs.token }}" }, run: 'printf "%s" "$T" > "$CADRE_OUTPUT"' }] }
  - { name: reads, agent: leaky, sources: [{ name: x, value: "{{ inputs.token }}" }] }
  - { name: writes, agent: leaky, target_entries: [{ name: x, value: "{{ inputs.token }}" }] }
  - { name: fails, agent: leaky, on_failure: continue, sources: [{ name: x, value: "{{ inputs.token }}", fail: true }] }
  - { name: typed, agent: leaky, on_failure: continue, sources: [{ name: x, fail: "{{ dyn(inputs.token) }}" }] }
  - { name: wrong, agent: leaky, on_failure: continue, sources: [{ name: x, value: "{{ dyn(int(inputs.token)) }}" }] }
  - { name: when, agent: leaky, on_failure: continue, when: "int(inputs.token) > 0", sources: [{ name: x }] }
  - { name: get, agent: http, on_failure: continue, sources: [{ name: x, url: "http://127.0.0.1:9/?t={{ inputs.token }}", headers: { authorization: "{{ inputs.token }}" } }] }
  - { name: list, type: map, on_failure: continue, items: "{{ dyn(inputs.token) }}", team: ./item, inputs: { v: x } }
  - { name: each, type: map, items: "{{ [inputs.token] }}", key: "{{ item }}", team: ./item, inputs: { v: "{{ item }}" } }
  - { name: twice, type: map, on_failure: continue, items: "{{ [inputs.token, inputs.token] }}", key: "{{ item }}", team: ./item, inputs: { v: x } }
  - { name: number, type: map, on_failure: continue, items: "{{ [inputs.token] }}", team: ./number, inputs: { v: "{{ item }}" } }
  - { name: sub, type: team, team: ./sub, inputs: { token: "{{ inputs.token }}" } }
  - { name: asks, type: gate, depends_on: [said], review: { prompt: "Send {{ inputs.token }}?", reviewers: [any] } }
  - { name: up, agent: leaky, on_failure: escalate, sources: [{ name: x, value: "{{ inputs.token }}", fail: true }] }
  - { name: tell, agent: leaky, notify: { on_start: { message: "{{ inputs.token }}" }, on_complete: { message: "{{ inputs.token }}" }, on_phase_fail: {}, on_escalate: {} } }
`,
  'sub/team.yml': `
name: "@local/sub"
version: 1.0.0
inputs: [{ name: token, type: string, required: true, secret: true }]
outputs: [{ name: direct, type: string, value: "{{ inputs.token }}" }, { name: list, type: list, value: "{{ [phases.a.data, inputs.token] }}" }]
phases:
  - { name: a, agent: leaky, sources: [{ name: x, value: "{{ inputs.token }}" }] }
`,
  'item/team.yml': `
name: "@local/item"
version: 1.0.0
inputs: [{ name: v, type: string, required: true }]
outputs: [{ name: v, type: string, value: "{{ inputs.v }}" }]
phases:
  - { name: a, agent: leaky, sources: [{ name: x, value: "{{ inputs.v }}" }] }
`,
  'number/team.yml': `
name: "@local/number"
version: 1.0.0
inputs: [{ name: v, type: number, required: true }]
phases:
  - { name: a, agent: leaky, sources: [{ name: x }] }
`,
}

const heard: string[] = []
let daemon: RunningDaemon
beforeAll(async () => {
  const home = folder()
  mkdirSync(join(home, 'agents'))
  writeFileSync(join(home, 'agents', 'leaky.ts'), LEAKY)
  writeFileSync(
    join(home, 'settings.yml'),
    JSON.stringify({ agents: { leaky: { token: SETTING }, ...BUILT_IN }, network: { allow: ['127.0.0.1'] } }),
    { mode: 0o600 },
  )
  daemon = await spawnDaemon({ home, env: { CADRE_LOG_LEVEL: 'debug' } })
})

async function ask(path: string, body: unknown): Promise<string> {
  const reply = await fetch(daemon.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${daemon.token}` },
    body: JSON.stringify(body),
  })
  const text = await reply.text()
  heard.push(`${path}: ${text}`)
  return text
}

const envelope = (type: string, payload: object) => ({
  type,
  version: 1,
  id: 'x',
  timestamp: Date.now(),
  payload,
})

/** Where a canary sits, with what stands around it. */
function found(where: string, bytes: string): string[] {
  return CANARIES.flatMap(canary =>
    [...variantsOf(canary)].flatMap(variant => {
      const at = bytes.indexOf(variant)
      return at < 0 ? [] : [`${where}: …${bytes.slice(Math.max(0, at - 120), at + 60)}…`]
    }),
  )
}

function filesBelow(path: string): string[] {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
}

test('no secret comes out anywhere', async () => {
  const path = files(TEAM)
  await ask('/v1/teams/plan', { path, inputs: { token: INPUT } })
  await ask('/v1/runs/start', { path, inputs: { token: INPUT, more: INPUT } })
  const { data, error } = JSON.parse(await ask('/v1/runs/start', { path, inputs: { token: INPUT } }))
  expect(error).toBeUndefined()
  const run_id: string = data.run_id
  const stream = fetch(`${daemon.url}/v1/runs/stream?run_id=${run_id}`)
    .then(reply => reply.text())
    .then(text => heard.push(`stream: ${text}`))

  const look = async () => {
    for (const what of ['get', 'list', 'tree', 'why', 'logs']) await ask(`/v1/runs/${what}`, { run_id })
    await ask('/v1/runs/phases', envelope('run_phases', { run_id }))
  }
  let reviews: { id: string; kind: string }[] = []
  for (let decided = 0; decided < 2; ) {
    reviews = JSON.parse(await ask('/v1/reviews/list', { state: 'pending' })).data.reviews
    for (const { id, kind } of reviews) {
      await look()
      const decision = kind === 'gate' ? 'approve' : 'fail'
      await ask('/v1/reviews/decide', { review_id: id, decision, comment: 'fine' })
      decided++
    }
    await Bun.sleep(20)
  }
  await daemon.ended(run_id)
  await stream
  await look()
  const { runs } = JSON.parse(await ask('/v1/runs/tree', { run_id })).data
  for (const below of runs) {
    for (const what of ['get', 'why', 'logs']) await ask(`/v1/runs/${what}`, { run_id: below.run_id })
    await ask('/v1/runs/phases', envelope('run_phases', { run_id: below.run_id }))
    await ask('/v1/artifacts/list', { run_id: below.run_id })
  }
  for (const what of ['agents/list', 'settings/list', 'reviews/list']) await ask(`/v1/${what}`, {})
  await ask('/v1/settings/get', { key: 'agents.leaky.token' })
  await ask('/v1/workspaces/get', envelope('workspace_list', {}))
  heard.push(await (await fetch(`${daemon.url}/metrics`)).text())

  // They did go down all these ways.
  const all = heard.join('\n')
  expect(runs.length).toBeGreaterThanOrEqual(3)
  expect(all.split('***').length).toBeGreaterThan(50)

  await daemon.stop()
  const places = [
    ...heard.flatMap(reply => found(reply.slice(0, reply.indexOf(':')), reply)),
    ...found('stdout', daemon.output.stdout),
    ...found('stderr', daemon.output.stderr),
    ...filesBelow(daemon.home)
      .filter(file => !file.endsWith('/settings.yml') && !/\/runs\/[^/]+\/files\//.test(file))
      .flatMap(file => found(file, readFileSync(file, 'latin1'))),
  ]
  expect(places).toEqual([])
}, 60_000)
