// `run PATH|TEAM`: starts a run, shows it while it goes on, prints its outputs.

import { resolve } from 'node:path'
import { createLog } from '../../log.ts'
import { homeFolder } from '../home.ts'
import { openRunner } from '../runner.ts'
import type { RunRequest } from '../start.ts'
import { type InputOptions, readInputs } from './inputs.ts'
import { watch } from './watch.ts'

export interface RunOptions extends InputOptions {
  home?: string
  name?: string
  workspace?: string
  json?: boolean
}

/** What stands after `run`: a package is named, a path is made absolute. */
export function whichTeam(reference: string): Pick<RunRequest, 'team' | 'path'> {
  return /^@[^/]+\/[^/]+$/.test(reference) ? { team: reference } : { path: resolve(reference) }
}

export async function run(reference: string, options: RunOptions): Promise<number> {
  const home = homeFolder(options.home)
  const runner = await openRunner(home, createLog({ level: 'warn' }))
  try {
    const { inputs, start } = await runner.prepare(whichTeam(reference))
    const { run_id } = await start({
      inputs: await readInputs(inputs, options),
      run_name: options.name ?? null,
      workspace: options.workspace ?? process.cwd(),
    })
    return await watch(runner, run_id, { home, json: options.json ?? false })
  } finally {
    await runner.close()
  }
}
