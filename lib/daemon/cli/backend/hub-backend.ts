// A hub as the backend of commands that take `--hub`.

import { CadreError } from '../../../error.ts'
import { commandLine } from '../../../program/called-as.ts'
import { hubOf } from '../kit/hub-client.ts'
import { hubCallee, SEARCHED } from './hub-answers.ts'
import { hubRunner } from './hub-runner.ts'
import type { RunBackend } from './run-backend.ts'
import { type Ask, NO_MATCH, reviewIdAt, runIdAt } from './typed-ids.ts'

/** `hub` is its address, or true for the one where the home is enrolled or signed in. */
export async function hubBackend(home: string, hub: string | true): Promise<RunBackend> {
  const client = await hubOf(home, hub === true ? {} : { hub })
  const callee = hubCallee(client)
  const ask: Ask = work => work(callee)
  const runner = hubRunner(client)
  const flags = hub === true ? ['--hub'] : ['--hub', hub]
  return {
    ask,
    hub: client,
    runId: typed => runIdAt(ask, `at ${client.url}`, typed).catch(tellLimit),
    reviewId: typed => reviewIdAt(ask, typed).catch(tellLimit),
    open: async (_, first) => ({ runner, result: await first(runner) }),
    served: async () => runner,
    folderOf: () => null,
    command: (...args) => commandLine(...args, ...flags),
  }
}

/** Adds to `not_found` how many runs and reviews were searched. */
function tellLimit(error: unknown): never {
  if (!(error instanceof CadreError) || error.reason !== NO_MATCH) throw error
  throw new CadreError(error.code, `${error.message} among the newest ${SEARCHED} of the hub; give the whole id`)
}
