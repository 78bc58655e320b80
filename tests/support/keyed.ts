// A process that tests kill. It starts three runs that need the same key, resumes the first one while the others wait,
// and exits when all have ended. The file `begun` in the home has a line for each attempt of their phases.
//
//   bun tests/support/keyed.ts HOME

import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { agent, Type } from '../../lib/agent/cadre.ts'
import { type RunId, readRunId } from '../../lib/files/run-id.ts'
import { testEngine } from './engine.ts'

export const RUN_IDS = [1, 2, 3].map(nr => readRunId(`01900000-0000-7000-8000-00000000001${nr}`))

const TEAM = `
name: "@local/keyed"
version: 1.0.0
inputs: [{ name: env, type: string, default: prod }]
concurrency: { key: "deploy-{{ inputs.env }}" }
phases:
  - { name: ship, agent: note, sources: [{ name: x }] }
`

/** Returns the states and attempts of the runs. */
export async function keyed(home: string) {
  const note = agent({
    type: 'connector',
    version: '1.0.0',
    description: 'Notes who executes.',
    settings: Type.Object({}),
    source: {
      effect: 'read',
      entry: Type.Object({ name: Type.String() }),
      async run(_, { run }) {
        appendFileSync(join(home, 'begun'), `${run.id}\n`)
        return { text: 'noted' }
      },
    },
  })
  const t = await testEngine({ home, agents: { note } })
  const { engine } = t
  try {
    const begin = await t.prepare(TEAM)
    const [first, ...others] = RUN_IDS as [RunId, ...RunId[]]
    await begin({ runId: first })
    if ((await engine.ended(first)).attempt === 1) {
      await Promise.all([...others.map(runId => begin({ runId })), engine.resume(first, { from: 'ship' })])
    }
    const ended = await Promise.all(RUN_IDS.map(runId => begin({ runId }).then(() => engine.ended(runId))))
    return ended.map(({ state, attempt }) => `${state} ${attempt}`)
  } finally {
    await t.close()
  }
}

if (import.meta.main) console.log(await keyed(process.argv[2]!))
