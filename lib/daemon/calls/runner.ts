// What commands do with runs: through the process that holds the home, or through this process, which then holds it.

import type { Static } from 'typebox'
import { CadreError } from '../../error.ts'
import type { RunId } from '../../files/run-id.ts'
import type { JsonObject } from '../../json.ts'
import type { Log } from '../../log/log.ts'
import type { Decision } from '../../run/engine.ts'
import type { AskedReview } from '../../wire/calls/reviews.ts'
import type { ResumeRun } from '../../wire/calls/runs.ts'
import type { Which } from '../../wire/calls/teams.ts'
import type { Field } from '../../wire/records/forms.ts'
import type { RunEvent, Why } from '../../wire/records/run-records.ts'
import { holderOf } from '../home/lock.ts'
import type { RunRequest } from '../runs/start-run.ts'
import { type Client, withHome } from './client.ts'
import type { CommandHost } from './command-host.ts'

type Answer = Omit<Decision, 'by'>

/** A team that was read and found valid. */
interface Prepared {
  inputs: readonly Field[]
  /** Starting the same `runId` again changes nothing. */
  start(runId: RunId, request: Omit<RunRequest, keyof Which>): Promise<{ run_id: string }>
}

export interface ResumeRequest {
  /** Repeat this phase and all phases that depend on it. */
  from_phase?: string
  /** Repeat the failed items of maps that completed nevertheless. */
  failed?: boolean
  /** Secret inputs. */
  inputs?: JsonObject
}

/** `already_waits`: at a hub, the same order was given before, and the daemon of the run has not answered it. */
interface OrderFate {
  already_waits?: boolean
}

/** What can be done with runs wherever they are: in a home, or at a hub. */
export interface Follower {
  /** `cleanup`: names of `always` phases that go on. */
  cancel(runId: string): Promise<{ cleanup: string[] } & OrderFate>
  /**
   * Returns what runs again, and what was already written and is not sent again; null when only the daemon of the run
   * knows. `continued` means that it was interrupted.
   */
  resume(runId: string, request: ResumeRequest): Promise<Static<typeof ResumeRun.data> | null>
  /** Returns the run that continues. */
  decide(reviewId: string, answer: Answer): Promise<{ run_id: string } & OrderFate>
  /** `say` gets what people should know meanwhile. */
  events(runId: string, signal: AbortSignal, say: (line: string) => void): AsyncGenerator<RunEvent>
  /** Reviews that nobody has answered, newest first, at most 100. */
  pending(): Promise<AskedReview[]>
  /** This process, if it holds the home. What runs in it stops with it. */
  readonly host: CommandHost | null
}

export interface Runner extends Follower {
  /** Throws `invalid_request` with every problem of the team. */
  prepare(which: Which): Promise<Prepared>
  resume(runId: string, request: ResumeRequest): Promise<Static<typeof ResumeRun.data>>
  /** Asks other systems about everything that a run wrote, and that is in doubt or not yet confirmed. */
  askAgain(runId: string): Promise<Why>
  /** Deletes an ended run and all below it, with their files. */
  remove(runId: string): Promise<{ run_id: string }>
}

/**
 * Opens a runner and calls `first` with it. `first` may be called more than once, because a process that holds the home
 * may release it, or die, in between. The caller closes the host. `command` is the name of this process in the lock.
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

/** A runner through the process that holds the home; null when none does. */
export function servedRunner(home: string): Promise<Runner | null> {
  return withHome<Runner | null>(
    home,
    async client => through(client),
    async () => null,
  )
}

/** The calls are loaded with the first of them: a run in this process needs none. */
function through(client: Client): Runner {
  const calls = () => import('../../wire/calls/runs.ts')
  const ofReviews = () => import('../../wire/calls/reviews.ts')
  return {
    host: null,
    async prepare(which) {
      const [{ ValidateTeam }, { StartRun }] = await Promise.all([import('../../wire/calls/teams.ts'), calls()])
      const { inputs } = await client.call(ValidateTeam, which)
      return { inputs, start: (run_id, request) => client.call(StartRun, { ...which, ...request, run_id }) }
    },
    cancel: async run_id => client.call((await calls()).CancelRun, { run_id }),
    askAgain: async run_id => client.call((await calls()).GetWhy, { run_id, ask: true }),
    remove: async run_id => client.call((await calls()).DeleteRun, { run_id }),
    resume: async (run_id, request) => client.call((await calls()).ResumeRun, { run_id, ...request }),
    decide: async (review_id, answer) => client.call((await ofReviews()).DecideReview, { review_id, ...answer }),
    events: (runId, signal) => client.events(runId, signal),
    async pending() {
      const query = { state: 'pending', limit: 100, offset: 0 }
      return (await client.call((await ofReviews()).ListReviews, query)).reviews
    },
  }
}

/** Starts a new run at once. Everything else, and the calls of others, wait for the server. */
async function inProcess(host: CommandHost): Promise<Runner> {
  const [{ loadTeam, startBundle }, { localName }] = await Promise.all([
    import('../runs/start-run.ts'),
    import('../home/local-name.ts'),
  ])
  const { daemon } = host
  return {
    ...through(host.client),
    host,
    async prepare(which) {
      const bundle = await loadTeam(daemon, which)
      return {
        inputs: bundle.team(bundle.root).inputs,
        async start(runId, request) {
          const record = await startBundle(
            daemon,
            bundle,
            { ...which, ...request },
            { local: true, actor: localName(), runId },
          )
          host.serveSoon()
          return record
        },
      }
    },
  }
}
