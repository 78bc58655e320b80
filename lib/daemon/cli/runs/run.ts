// `run PATH|TEAM`: starts a run, shows its progress, and prints its outputs.

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { CadreError } from '../../../error.ts'
import type { RunId } from '../../../files/run-id.ts'
import type { JsonObject } from '../../../json.ts'
import { createLog } from '../../../log/log.ts'
import { commandLine } from '../../../program/called-as.ts'
import type { Field } from '../../../team/team.ts'
import { line } from '../../../text/printable.ts'
import { print, printJsonLine, printMessage } from '../../../text/terminal.ts'
import type { OwnFile } from '../../../wire/calls/teams.ts'
import { isInPlaceName } from '../../../wire/in-place.ts'
import { copiedText } from '../../home/copied-home.ts'
import { homeFolder } from '../../home/home.ts'
import type { RunRequest } from '../../runs/start-run.ts'
import { TriggerTable } from '../../triggers/trigger-table.ts'
import type { CommandHost } from '../backend/command-host.ts'
import { homeBackend } from '../backend/home-backend.ts'
import { type HomeRunner, openRunner, type Started, servedRunner } from '../backend/home-runner.ts'
import { EXIT } from '../kit/exit.ts'
import { type InputOptions, readInputs } from '../kit/inputs.ts'
import { watch } from './watch.ts'

export interface RunOptions extends InputOptions {
  home?: string
  name?: string
  workspace?: string
  env?: string
  /** Do not follow the run. */
  detach?: boolean
  json?: boolean
}

/** Reads the argument of `run`: a package is named, and a path is made absolute. */
export function whichTeam(reference: string): Pick<RunRequest, 'team' | 'path'> {
  return isTeamName(reference) ? { team: reference } : { path: resolve(reference) }
}

/** A map in place cannot be run, which is said of it by its name. */
export function isTeamName(reference: string): boolean {
  return /^@[^/]+\/[^/]+$/.test(reference) || (isInPlaceName(reference) && !existsSync(reference))
}

/**
 * The given inputs with the paths of files as the run has to read them. They are relative to the caller's folder; in
 * another workspace they must be absolute, and `files/` would be a folder of the run. Throws when there is no such file.
 */
function filesFromHere(fields: readonly Field[], given: JsonObject, elsewhere: boolean): JsonObject {
  const inputs = { ...given }
  for (const { name, type } of fields) {
    const path = inputs[name]
    if (type !== 'file' || typeof path !== 'string') continue
    const whole = resolve(path)
    if (!existsSync(whole)) throw new CadreError('invalid_request', `input ${name}: there is no file ${whole}`)
    if (elsewhere) inputs[name] = whole
    else if (path.startsWith('files/')) inputs[name] = `./${path}`
  }
  return inputs
}

export async function run(reference: string, options: RunOptions): Promise<number> {
  const home = homeFolder(options.home)
  const workspace = await placeOf(options.workspace, home)
  let runId: RunId | undefined
  const start = async ({ prepare }: Pick<HomeRunner, 'prepare'>) => {
    const { inputs, ownFiles, newId, start: startPrepared } = await prepare(whichTeam(reference))
    const given = await readInputs(inputs, options)
    if (runId === undefined && ownFiles.length > 0) await tellMisplaced(ownFiles, workspace.path)
    runId ??= await newId()
    return startPrepared(runId, {
      inputs: filesFromHere(inputs, given, options.workspace !== undefined),
      run_name: options.name ?? null,
      workspace: workspace.reference,
      ...(options.env !== undefined && { environment: options.env }),
      ...(options.detach && { unattended: true }),
    })
  }
  if (options.detach) return detached(home, start, options.json ?? false)
  const { runner, result } = await openRunner(home, 'run', createLog({ level: 'warn' }), start)
  if (runner.host) {
    printInterrupted(runner.host)
    printIdleTriggers(runner.host)
  }
  return watch(runner, result.run_id, { backend: homeBackend(home), json: options.json ?? false })
}

/** Most runs work here. What asks for the workspaces of the home takes time to load. */
async function placeOf(reference: string | undefined, home: string): Promise<{ reference: string; path: string }> {
  const here = resolve('.')
  if (reference === undefined) return { reference: here, path: here }
  return (await import('../backend/named-workspace.ts')).workspaceOf(reference, home)
}

async function tellMisplaced(files: readonly OwnFile[], folder: string): Promise<void> {
  const { misplaced } = await import('../../runs/own-files.ts')
  printMessage(misplaced(files, folder).map(note => line`note: ${note}`))
}

/** Starts the run in the process that holds the home, and prints its id. */
async function detached(home: string, start: (runner: HomeRunner) => Promise<Started>, json: boolean): Promise<number> {
  const runner = await servedRunner(home)
  if (!runner) {
    const serve = commandLine('serve')
    throw new CadreError('invalid_state', `--detach needs a process that executes the run; start one with: ${serve}`)
  }
  const { run_id, reason = null } = await start(runner)
  if (json) printJsonLine({ run_id })
  else print(line`${run_id}`)
  if (reason === 'not_started') {
    printMessage(line`the run could not begin; see why: ${commandLine('why', run_id)}`)
    return EXIT.usage
  }
  printMessage(line`the run goes on in the daemon: ${commandLine('watch', run_id)}`)
  return EXIT.done
}

/** Mentions triggers, which only a daemon looks at. */
function printIdleTriggers({ daemon }: CommandHost): void {
  const live = new TriggerTable(daemon.db).live()
  if (live === 0) return
  const many = live === 1 ? '1 trigger is enabled' : `${live} triggers are enabled`
  printMessage(line`no daemon runs, so no trigger starts anything (${many}); to start one: ${commandLine('serve')}`)
}

/** Mentions interrupted runs, which are not restarted here. */
function printInterrupted({ daemon }: CommandHost): void {
  const { copied, engine } = daemon
  const held = new Set(engine.store.copies.held())
  if (copied && held.size > 0)
    printMessage(line`${copiedText(copied)}; its unfinished runs wait for you: ${commandLine('status')}`)
  const isLeft = (id: string) => !held.has(id) && ['running', 'queued'].includes(engine.record(id).state)
  const interrupted = daemon.openRuns.interrupted.filter(isLeft)
  const [first, ...more] = interrupted
  if (first === undefined) return
  const message =
    more.length === 0
      ? `run ${first} of ${engine.record(first).team} was interrupted; continue it with: ${commandLine('resume', first)}`
      : `${interrupted.length} runs were interrupted; continue them all with: ${commandLine('serve')}`
  printMessage(line`${message}`)
}
