// A hub as the backend of commands that take `--hub`.

import { commandLine } from '../../../program/called-as.ts'
import { hubOf } from '../kit/hub-client.ts'
import { hubRunner } from './hub-runner.ts'
import type { RunBackend } from './run-backend.ts'
import { type Ask, reviewIdAt, runIdAt } from './typed-ids.ts'

/** `hub` is its address, or true for the one where the home is enrolled or signed in. */
export async function hubBackend(home: string, hub: string | true): Promise<RunBackend> {
  const client = await hubOf(home, hub === true ? {} : { hub })
  // Hub and daemon answer the same calls about runs with the same records.
  const ask: Ask = work => work(client)
  const runner = hubRunner(client)
  const flags = hub === true ? ['--hub'] : ['--hub', hub]
  return {
    ask,
    hub: client,
    runId: typed => runIdAt(ask, `at ${client.url}`, typed),
    reviewId: typed => reviewIdAt(ask, typed),
    open: async (_, first) => ({ runner, result: await first(runner) }),
    served: async () => runner,
    folderOf: () => null,
    command: (...args) => commandLine(...args, ...flags),
  }
}
