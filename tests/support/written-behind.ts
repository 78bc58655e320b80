// Runs a map whose sub-runs write small files and read them again. As a program it runs the map in the home that it is
// given, which a test kills at any of its writes.

import { agent, Type } from '../../lib/agent/cadre.ts'
import { readRunId } from '../../lib/files/run-id.ts'
import { testEngine } from './engine.ts'

export const ITEMS = 3
const RUN_ID = readRunId('00000000-0000-4000-8000-000000000002')

const note = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Writes a text into a file, or copies one.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String(), text: Type.Optional(Type.String()), from: Type.Optional(Type.String()) }),
    async run({ name, text, from }, context) {
      await context.write(name, from === undefined ? `${text}\n` : await (await context.read(from)).text())
      return { text: name }
    },
  },
})

const TEAM = {
  'team.yml': `
name: "@local/behind"
version: 1.0.0
phases:
  - { name: each, type: map, items: [${Array.from({ length: ITEMS }, (_, n) => n).join(', ')}], team: ./one, inputs: { item: "{{ item }}" }, concurrency: 2 }
`,
  'one/team.yml': `
name: "@local/one"
version: 1.0.0
inputs: [{ name: item, type: number, required: true }]
phases:
  - { name: first, agent: note, sources: [{ name: a.txt, text: "item {{ inputs.item }}" }] }
  - { name: second, agent: note, depends_on: [first], sources: [{ name: b.txt, from: files/first/a.txt }] }
`,
}

/** Runs the map to its end, or continues it, and returns its state. */
export async function written(home: string): Promise<string> {
  const t = await testEngine({ home, agents: { note } })
  await t.start(TEAM, {}, { runId: RUN_ID })
  const { state } = await t.engine.ended(RUN_ID)
  await t.close()
  return state
}

if (import.meta.main) await written(process.argv[2]!)
