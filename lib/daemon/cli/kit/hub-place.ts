// Runs of a hub, for the commands that take `--hub`.

import { CadreError } from '../../../error.ts'
import { commandLine } from '../../../program/called-as.ts'
import { hubCallee, SEARCHED } from '../../calls/hub-answers.ts'
import { hubRunner } from '../../calls/hub-runner.ts'
import { type Ask, NO_MATCH, reviewIdAt, runIdAt } from '../../calls/ids.ts'
import { hubOf } from './hub-client.ts'
import type { RunPlace } from './run-place.ts'

/** `hub` is its address, or true for the one where the home is enrolled or signed in. */
export async function hubPlace(home: string, hub: string | true): Promise<RunPlace> {
  const client = await hubOf(home, hub === true ? {} : { hub })
  const callee = hubCallee(client)
  const ask: Ask = work => work(callee)
  const runner = hubRunner(client)
  const flags = hub === true ? ['--hub'] : ['--hub', hub]
  return {
    ask,
    hub: client,
    runId: typed => runIdAt(ask, `at ${client.url}`, typed).catch(withLimit),
    reviewId: typed => reviewIdAt(ask, typed).catch(withLimit),
    open: async (_, first) => ({ runner, result: await first(runner) }),
    served: async () => runner,
    folderOf: () => null,
    command: (...args) => commandLine(...args, ...flags),
  }
}

/** Says how far a beginning was looked for. */
function withLimit(error: unknown): never {
  if (!(error instanceof CadreError) || error.reason !== NO_MATCH) throw error
  throw new CadreError(error.code, `${error.message} among the newest ${SEARCHED} of the hub; give the whole id`)
}
