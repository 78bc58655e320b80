// What commands do to runs: through the process that holds the home, or through this one, which holds it meanwhile.

import type { Static } from 'typebox'
import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import type { Log } from '../../log.ts'
import type { Decision } from '../../run/engine.ts'
import {
  CancelRun,
  DecideReview,
  ListReviews,
  ResumeRun,
  StartRun,
  ValidateTeam,
  type Which,
} from '../../wire/daemon-calls.ts'
import type { Field } from '../../wire/forms.ts'
import type { ReviewRecord, RunEvent } from '../../wire/run-records.ts'
import { holderOf } from '../lock.ts'
import type { RunRequest } from '../start-run.ts'
import { type Client, withHome } from './client.ts'
import type { CommandHost } from './command-host.ts'

type Answer = Omit<Decision, 'by'>

/** A team that was read and found valid. */
interface Prepared {
  inputs: readonly Field[]
  /** Starting the same `runId` again changes nothing. */
  start(runId: string, request: Omit<RunRequest, keyof Which>): Promise<{ run_id: string }>
}

export interface ResumeRequest {
  /** Repeat this phase and all that depends on it. */
  from_phase?: string
  /** Repeat the failed items of maps that completed all the same. */
  failed?: boolean
  /** Secret inputs. */
  inputs?: JsonObject
}

export interface Runner {
  /** Throws `invalid_request` with every problem of the team. */
  prepare(which: Which): Promise<Prepared>
  /** `cleanup`: names of `always` phases that go on. */
  cancel(runId: string): Promise<Static<typeof CancelRun.data>>
  /** Tells what runs again, and what was written outside and is not sent again. `continued`: it was interrupted. */
  resume(runId: string, request: ResumeRequest): Promise<Static<typeof ResumeRun.data>>
  /** Tells the run that goes on. */
  decide(reviewId: string, answer: Answer): Promise<{ run_id: string }>
  events(runId: string, signal: AbortSignal): AsyncGenerator<RunEvent>
  /** Reviews that nobody has answered, newest first, at most 100. */
  pending(): Promise<ReviewRecord[]>
  /** This process, when it holds the home: what runs stops with it. */
  readonly host: CommandHost | null
}

/**
 * Opens a runner and does `first` with it, which may be called again: a process that holds the home may let go of it, or
 * die, in between. A host is left to the caller, who closes it. `command` is how the lock names this process.
 */
export function openRunner<T>(
  home: string,
  command: string,
  log: Log,
  first: (runner: Runner) => Promise<T>,
): Promise<{ runner: Runner; result: T }> {
  const doFirst = async (runner: Runner) => ({ runner, result: await first(runner) })
  return withHome(
    home,
    client => doFirst(through(client)),
    async () => {
      const { CommandHost } = await import('./command-host.ts')
      let host: CommandHost
      try {
        host = await CommandHost.open(home, command, log)
      } catch (error) {
        const another = error instanceof CadreError && error.code === 'conflict' && holderOf(home) !== null
        if (another) return openRunner(home, command, log, first)
        throw error
      }
      try {
        return await doFirst(await inProcess(host))
      } catch (error) {
        await host.close()
        throw error
      }
    },
  )
}

function through(client: Client): Runner {
  return {
    host: null,
    async prepare(which) {
      const { inputs } = await client.call(ValidateTeam, which)
      return { inputs, start: (run_id, request) => client.call(StartRun, { ...which, ...request, run_id }) }
    },
    cancel: run_id => client.call(CancelRun, { run_id }),
    resume: (run_id, request) => client.call(ResumeRun, { run_id, ...request }),
    decide: (review_id, answer) => client.call(DecideReview, { review_id, ...answer }),
    events: (runId, signal) => client.events(runId, signal),
    async pending() {
      const query = { state: 'pending', limit: 100, offset: 0 }
      return (await client.call(ListReviews, query)).reviews
    },
  }
}

/** A new run begins at once; everything else, and what others ask, waits for the server. */
async function inProcess(host: CommandHost): Promise<Runner> {
  const { loadTeam, startBundle } = await import('../start-run.ts')
  const { daemon } = host
  return {
    ...through(host.client),
    host,
    async prepare(which) {
      const bundle = await loadTeam(daemon, which)
      return {
        inputs: bundle.team(bundle.root).inputs,
        async start(runId, request) {
          const record = await startBundle(daemon, bundle, { ...which, ...request }, { local: true, runId })
          host.serveSoon()
          return record
        },
      }
    },
  }
}
