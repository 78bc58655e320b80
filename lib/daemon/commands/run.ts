// `run PATH|TEAM`: starts a run, shows its progress, and prints its outputs.

import { resolve } from 'node:path'
import type { JsonObject } from '../../json.ts'
import { createLog } from '../../log.ts'
import type { Field } from '../../team/team.ts'
import type { CommandHost } from '../calls/command-host.ts'
import { openRunner } from '../calls/runner.ts'
import { homeFolder } from '../home.ts'
import type { RunRequest } from '../start-run.ts'
import { type InputOptions, readInputs } from './inputs.ts'
import { watch } from './watch.ts'

export interface RunOptions extends InputOptions {
  home?: string
  name?: string
  workspace?: string
  json?: boolean
}

/** Reads the argument of `run`: a package is named, and a path is made absolute. */
export function whichTeam(reference: string): Pick<RunRequest, 'team' | 'path'> {
  return /^@[^/]+\/[^/]+$/.test(reference) ? { team: reference } : { path: resolve(reference) }
}

/** Reads the argument of `--workspace`: a name is used as it is, and text that looks like a path is made absolute. */
function workspaceOf(reference: string): string {
  return /^\.{1,2}$|\//.test(reference) ? resolve(reference) : reference
}

/** Makes paths of files absolute. They are relative to the caller's folder, but the run would look in its workspace. */
function filesFromHere(fields: readonly Field[], given: JsonObject): JsonObject {
  const files = new Set(fields.filter(({ type }) => type === 'file').map(({ name }) => name))
  const entries = Object.entries(given).map(([name, value]) => {
    return [name, files.has(name) && typeof value === 'string' ? resolve(value) : value]
  })
  return Object.fromEntries(entries)
}

export async function run(reference: string, options: RunOptions): Promise<number> {
  const home = homeFolder(options.home)
  const log = createLog({ level: 'warn' })
  const runId = Bun.randomUUIDv7()
  const { runner } = await openRunner(home, 'run', log, async ({ prepare }) => {
    const { inputs, start } = await prepare(whichTeam(reference))
    const given = await readInputs(inputs, options)
    return start(runId, {
      inputs: options.workspace === undefined ? given : filesFromHere(inputs, given),
      run_name: options.name ?? null,
      workspace: workspaceOf(options.workspace ?? '.'),
    })
  })
  if (runner.host) tellLeft(runner.host)
  return watch(runner, runId, { home, json: options.json ?? false })
}

/** Mentions interrupted runs, which are not restarted here. */
function tellLeft({ daemon }: CommandHost): void {
  const interrupted = [...daemon.left].filter(id => daemon.engine.record(id).state === 'running')
  const [first, ...more] = interrupted
  if (first === undefined) return
  const line =
    more.length === 0
      ? `run ${first} of ${daemon.engine.record(first).team} was interrupted; continue it with: bun daemon.ts resume ${first}`
      : `${interrupted.length} runs were interrupted; continue them all with: bun daemon.ts serve`
  process.stderr.write(`${line}\n`)
}
