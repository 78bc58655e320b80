// A process that tests kill. It runs a team and resumes the run from the first phase, which then returns other items,
// or from the map. The program starts, resumes or continues the run, and exits when the run has ended.
//
//   bun tests/support/renewed.ts HOME VENDOR_URL list|each folder|place

import { agent, Type } from '../../lib/agent/cadre.ts'
import { readRunId } from '../../lib/files/run-id.ts'
import { testEngine } from './engine.ts'

export const RUN_ID = readRunId('01900000-0000-7000-8000-000000000002')
/** The items in the first attempt and in the second. */
export const ITEMS = [
  ['a', 'b', 'c'],
  ['c', 'd', 'b'],
] as const

const list = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Returns the items of this attempt.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String() }),
    run: async (_, context) => ({ text: 'items', data: { items: [...ITEMS[context.attempt === 1 ? 0 : 1]] } }),
  },
})

const vendor = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Creates tickets, which must not be created twice and can be searched for.',
  settings: Type.Object({ base_url: Type.String() }),
  target: {
    effect: 'once',
    entry: Type.Object({ name: Type.String(), title: Type.String() }),
    async run({ title }, context) {
      await context.fetch(`${context.settings.base_url}/${title}`, { method: 'POST', body: context.key })
      return { text: title, data: { title } }
    },
    async find({ title }, context) {
      const reply = await context.fetch(`${context.settings.base_url}/${title}`)
      return reply.status === 404 ? null : { text: title, data: { title } }
    },
  },
})

const note = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Writes a file.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String() }),
    async run({ name }, context) {
      await context.write(name, 'noted')
      return { text: name }
    },
  },
})

/** Posts the title `v`. */
const LEAF = `
name: "@local/leaf"
version: 1.0.0
inputs: [{ name: v, type: string, required: true }]
phases:
  - { name: post, agent: vendor, target_entries: [{ name: t, title: "{{ inputs.v }}" }] }
`

/** The same with a map of a folder, and with a map in place. */
const TEAMS = {
  folder: {
    'team.yml': `
name: "@local/renewed"
version: 1.0.0
outputs: [{ name: all, type: list, value: "{{ phases.each.data.items.map(i, i.outputs.at) }}" }]
phases:
  - { name: list, agent: list, sources: [{ name: x }] }
  - { name: each, type: map, depends_on: [list], items: "{{ phases.list.data.items }}", key: "{{ item }}", team: ./one, inputs: { v: "{{ item }}", at: "{{ index }}" }, concurrency: 2 }
`,
    'one/team.yml': `
name: "@local/one"
version: 1.0.0
inputs: [{ name: v, type: string, required: true }, { name: at, type: number, required: true }]
outputs:
  - { name: at, type: string, value: "{{ inputs.v + string(inputs.at) }}" }
  - { name: note, type: file, value: files/note/x.txt }
phases:
  - { name: note, agent: note, sources: [{ name: x.txt }] }
  - { name: below, type: team, team: ./leaf, inputs: { v: "{{ inputs.v }}" } }
`,
    'one/leaf/team.yml': LEAF,
  },
  place: {
    'team.yml': `
name: "@local/renewed"
version: 1.0.0
outputs: [{ name: all, type: list, value: "{{ phases.each.data.items.map(i, i.outputs.at) }}" }]
phases:
  - { name: list, agent: list, sources: [{ name: x }] }
  - name: each
    type: map
    depends_on: [list]
    items: "{{ phases.list.data.items }}"
    key: "{{ item }}"
    concurrency: 2
    outputs:
      - { name: at, type: string, value: "{{ item + string(index) }}" }
      - { name: note, type: file, value: files/note/x.txt }
    phases:
      - { name: note, agent: note, sources: [{ name: x.txt }] }
      - { name: below, type: team, team: ./leaf, inputs: { v: "{{ item }}" } }
`,
    'leaf/team.yml': LEAF,
  },
}
export type Form = keyof typeof TEAMS

/**
 * Runs until attempt number `attempts` has ended, and returns the outputs. The second attempt begins at phase `from`.
 */
export async function renewed(home: string, base_url: string, attempts: 1 | 2, from = 'list', form: Form = 'folder') {
  const t = await testEngine({ home, agents: { list, vendor, note }, settings: { vendor: { base_url } } })
  try {
    await t.start(TEAMS[form], {}, { runId: RUN_ID })
    for (;;) {
      const { state, attempt, outputs, completed_at } = await t.engine.ended(RUN_ID)
      if (completed_at !== null && attempt === attempts) return { state, outputs }
      await t.engine.resume(RUN_ID, { from })
    }
  } finally {
    await t.close()
  }
}

if (import.meta.main) {
  const [, , home, url, from, form] = process.argv
  console.log(await renewed(home!, url!, 2, from, form as Form))
}
