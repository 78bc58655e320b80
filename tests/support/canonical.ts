// The canonical run, as a process that tests kill. It has a team phase and a map that hand up small and large files
// from the run's folder and from the workspace, a tolerated failure, an `always` phase, logs, and entries that must not
// be written twice. The program starts or continues the run, and exits when the run has ended or waits for a person.
//
//   bun tests/support/canonical.ts HOME VENDOR_URL

import { agent, Type } from '../../lib/agent/cadre.ts'
import { readRunId } from '../../lib/files/run-id.ts'
import { testEngine } from './engine.ts'
import { openHome, pendingReviews } from './home-rows.ts'

export const RUN_ID = readRunId('01900000-0000-7000-8000-000000000001')

const note = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Writes the given text to a file.',
  settings: Type.Object({}),
  source: {
    effect: 'idempotent',
    entry: Type.Object({ name: Type.String(), value: Type.Any(), bytes: Type.Optional(Type.Number()) }),
    async run({ name, value, bytes = 0 }, context) {
      context.log(`writes ${name}`)
      await context.write(name, `${value}\n`.padEnd(bytes, '.'))
      return { text: `wrote ${name}`, data: { value } }
    },
  },
})

const Post = Type.Object({ name: Type.String(), title: Type.String() })
const Settings = Type.Object({ base_url: Type.String() })

/** Posts a title, which the vendor then counts as written. Nothing may be written twice. */
const post = async (url: string, title: string, context: { key: string; fetch: typeof fetch }) => {
  const reply = await context.fetch(url, { method: 'POST', body: JSON.stringify({ key: context.key, title }) })
  return { text: title, data: { title }, external: { id: await reply.text() } }
}

const vendor = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Tickets can be looked for, mails cannot.',
  settings: Settings,
  actions: {
    ticket: {
      direction: 'target',
      effect: 'once',
      entry: Post,
      run: ({ title }, context) => post(`${context.settings.base_url}/ticket`, title, context as never),
      async find({ title }, context) {
        const reply = await context.fetch(`${context.settings.base_url}/ticket?key=${context.key}`)
        return reply.status === 404 ? null : { text: title, data: { title }, external: { id: await reply.text() } }
      },
    },
    mail: {
      direction: 'target',
      effect: 'once',
      entry: Post,
      run: ({ title }, context) => post(`${context.settings.base_url}/mail`, title, context as never),
    },
  },
  notify: {
    effect: 'once',
    entry: Type.Object({}),
    async run(_, context) {
      return post(`${context.settings.base_url}/event`, context.event!.name, context as never)
    },
  },
})

/** Larger than the files that are stored in the database. */
const LARGE = 300_000

const TEAM = {
  'team.yml': `
name: "@local/canonical"
version: 1.0.0
outputs:
  - { name: total, type: number, value: "{{ phases.each.data.items.map(i, i.outputs.value)[1] + phases.down.data.value }}" }
  - { name: large, type: file, value: "{{ phases.down.data.large }}" }
  - { name: item, type: file, value: "{{ phases.each.data.items[1].outputs.small }}" }
phases:
  - { name: down, type: team, team: ./one, inputs: { value: 1 } }
  - { name: each, type: map, items: [10, 20], key: "{{ item == 10 ? 'k 10' : 'k20' }}", team: ./one, inputs: { value: "{{ item }}" }, concurrency: 1 }
  - { name: ticket, agent: vendor, action: ticket, depends_on: [down, each], target_entries: [{ name: t1, title: First }, { name: t2, title: Second }] }
  - { name: mail, agent: vendor, action: mail, depends_on: [ticket], target_entries: [{ name: m, title: Mail }] }
  - { name: fails, agent: exec, depends_on: [mail], commands: [{ name: c, run: "exit 3" }] , on_failure: continue }
  - { name: last, agent: note, depends_on: [mail], sources: [{ name: last.txt, value: "{{ phases.down.data.value }}" }] }
  - { name: sweep, agent: note, depends_on: [fails, last], always: true, sources: [{ name: sweep.txt, value: "{{ phases.fails.state }}" }] }
  - { name: tell, agent: vendor, notify: [on_complete] }
`,
  'one/team.yml': `
name: "@local/one"
version: 1.0.0
inputs: [{ name: value, type: number, required: true }]
outputs:
  - { name: value, type: number, value: "{{ phases.a.data.value }}" }
  - { name: small, type: file, value: "{{ phases.a.files[0].path }}" }
  - { name: large, type: file, value: "{{ phases.b.files[0].path }}" }
  - { name: worked, type: file, value: "worked-{{ inputs.value }}.txt" }
phases:
  - { name: a, agent: note, sources: [{ name: a.txt, value: "{{ inputs.value + 1 }}" }] }
  - { name: b, agent: note, sources: [{ name: b.txt, value: "{{ inputs.value }}", bytes: ${LARGE} }] }
  - { name: c, agent: exec, env: { N: "{{ string(inputs.value) }}" }, commands: [{ name: c, run: 'echo "$N" > "worked-$N.txt"' }] }
`,
}

/** Runs the team until it ends or asks a person, and returns its state. `complete` answers the question. */
export async function canonical(home: string, base_url: string, answer?: 'complete'): Promise<string> {
  const t = await testEngine({ home, agents: { note, vendor }, settings: { vendor: { base_url } } })
  const db = openHome(home)
  try {
    await t.start(TEAM, {}, { runId: RUN_ID })
    for (;;) {
      const { state, completed_at } = t.engine.record(RUN_ID)
      if (completed_at !== null) return (await t.engine.ended(RUN_ID)).state
      if (state === 'awaiting_input') {
        if (!answer) return state
        for (const { id } of pendingReviews(db)) await t.engine.decide(id, { decision: answer, by: 'the test' })
      }
      await Bun.sleep(1)
    }
  } finally {
    db.close()
    await t.close()
  }
}

if (import.meta.main) console.log(await canonical(process.argv[2]!, process.argv[3]!))
