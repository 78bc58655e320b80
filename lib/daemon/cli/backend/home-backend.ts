// The home as the backend of commands, and the choice between it and a hub.

import { readRunId, runFolder } from '../../../files/run-id.ts'
import { createLog } from '../../../log/log.ts'
import { commandLine } from '../../../program/called-as.ts'
import { homeFolder } from '../../home/home.ts'
import { openRunner, servedRunner } from './home-runner.ts'
import type { BackendOptions, RunBackend } from './run-backend.ts'
import type { Ask } from './typed-ids.ts'

/** The code for a hub is loaded for `--hub` only, so that `run` starts fast. */
export async function backendOf({ home: given, hub }: BackendOptions): Promise<RunBackend> {
  const home = homeFolder(given)
  return hub === undefined ? homeBackend(home) : (await import('./hub-backend.ts')).hubBackend(home, hub)
}

/** The code that reads the home is loaded with the first question, because `run` follows its run in its own process. */
export function homeBackend(home: string): RunBackend {
  const ask: Ask = async work => (await import('./run-answers.ts')).askAboutRuns(home, work)
  const ids = () => import('./typed-ids.ts')
  return {
    ask,
    hub: null,
    runId: async typed => (await ids()).runIdAt(ask, `in ${home}`, typed),
    reviewId: async typed => (await ids()).reviewIdAt(ask, typed),
    open: (command, first) => openRunner(home, command, createLog({ level: 'warn' }), first),
    served: () => servedRunner(home),
    folderOf: runId => runFolder(home, readRunId(runId)),
    command: commandLine,
  }
}
