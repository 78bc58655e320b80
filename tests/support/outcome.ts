// Runs one phase of one agent in a real engine, until it ends or asks a person.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Agent } from '../../lib/agent/define.ts'
import type { JsonObject } from '../../lib/json.ts'
import { runPhases } from '../../lib/run/engine.ts'
import { testEngine } from './engine.ts'
import { folder } from './folder.ts'
import { truthful } from './truthful.ts'

export interface OnePhase {
  agent: Agent
  /** The agent's name in team.yml. */
  name: string
  settings: Record<string, unknown>
  /** The fields of the phase besides `name` and `agent`, as in team.yml. */
  phase: JsonObject
  /** The files of the workspace by name. */
  files?: Record<string, string>
  /** The workspace; a new folder when absent. */
  workspace?: string
}

/** The phase in the form of `runs/phases`, after the run has ended or asked a person. */
export async function outcomeOf({ agent, name, settings, phase, files = {}, workspace = folder() }: OnePhase) {
  for (const [file, text] of Object.entries(files)) writeFileSync(join(workspace, file), text)
  // The vendors in tests write before they reply, so their first answer is final.
  const t = await testEngine({ agents: { [name]: truthful(agent) }, settings: { [name]: settings }, settle: 0 })
  try {
    const team = { name: '@local/one', version: '1.0.0', phases: [{ name: 'one', agent: name, ...phase }] }
    const { run_id } = await t.start(JSON.stringify(team), {}, { workspace })
    while (['queued', 'running'].includes(t.engine.store.runs.get(run_id)!.state)) await Bun.sleep(5)
    // What was presumed absent is looked for once more at the end of the run, and later.
    await t.engine.untilQuiet()
    return runPhases(t.engine.store, run_id, id => t.engine.bundle(id)).phases[0]!
  } finally {
    await t.close()
  }
}
