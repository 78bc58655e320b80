// What commands do with runs: through the process that holds the home, or through this process, which then holds it.

import { CadreError } from '../../../error.ts'
import type { RunId } from '../../../files/run-id.ts'
import type { ProcessLog } from '../../../log/log.ts'
import type { OwnFile, Which } from '../../../wire/calls/teams.ts'
import type { Field } from '../../../wire/records/forms.ts'
import type { Why } from '../../../wire/records/run-records.ts'
import { holderOf } from '../../home/lock.ts'
import type { RunRequest } from '../../runs/start-run.ts'
import type { CommandHost } from './command-host.ts'
import { type Callee, type Client, withHome } from './home-client.ts'
import type { Resumed, ResumeRequest, Runner } from './run-backend.ts'

/** A team that was read and found valid. */
interface Prepared {
  inputs: readonly Field[]
  /** The files beside team.yml that it names. */
  ownFiles: readonly OwnFile[]
  /** The id of a run that starts now. */
  newId(): Promise<RunId>
  /** Starting the same `runId` again changes nothing. */
  start(runId: RunId, request: Omit<RunRequest, keyof Which> & { unattended?: boolean }): Promise<Started>
}

export interface Started {
  run_id: string
  /** `not_started`: it has failed already. An older daemon says nothing. */
  reason?: string | null | undefined
}

export interface HomeRunner extends Runner {
  /** Calls without a function here. */
  readonly callee: Callee
  /** Throws `invalid_request` with every problem of the team. */
  prepare(which: Which): Promise<Prepared>
  resume(runId: string, request: ResumeRequest): Promise<Resumed>
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
  log: ProcessLog,
  first: (runner: HomeRunner) => Promise<T>,
): Promise<{ runner: HomeRunner; result: T }> {
  const doFirst = async (runner: HomeRunner) => ({ runner, result: await first(runner) })
  return withHome(
    home,
    client => doFirst(servedBy(client, home)),
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
export function servedRunner(home: string): Promise<HomeRunner | null> {
  return withHome<HomeRunner | null>(
    home,
    async client => servedBy(client, home),
    async () => null,
  )
}

/** The calls are loaded with the first of them: a run in this process needs none. */
function servedBy(client: Client, home: string): HomeRunner {
  const calls = () => import('../../../wire/calls/runs.ts')
  const ofReviews = () => import('../../../wire/calls/reviews.ts')
  return {
    host: null,
    callee: client,
    async prepare(which) {
      const [{ ValidateTeam }, { StartRun }] = await Promise.all([import('../../../wire/calls/teams.ts'), calls()])
      const { inputs, own_files: ownFiles = [] } = await client.call(ValidateTeam, which)
      return {
        inputs,
        ownFiles,
        newId: async () => (await import('./run-answers.ts')).newRunId(home),
        start: (run_id, request) => client.call(StartRun, { ...which, ...request, run_id }),
      }
    },
    cancel: async run_id => client.call((await calls()).CancelRun, { run_id }),
    askAgain: async run_id => client.call((await calls()).GetWhy, { run_id, ask: true }),
    remove: async run_id => client.call((await calls()).DeleteRun, { run_id }),
    async resume(run_id, request) {
      const { isPlan } = await import('../../../wire/records/resume-plan.ts')
      const resumed = await client.call((await calls()).ResumeRun, { run_id, ...request })
      if (isPlan(resumed)) throw new CadreError('internal', 'the daemon planned the resume and did not do it')
      return resumed
    },
    decide: async (review_id, answer) => client.call((await ofReviews()).DecideReview, { review_id, ...answer }),
    events: (runId, signal) => client.events(runId, signal),
    async pending() {
      const query = { state: 'pending', limit: 100, offset: 0 }
      return (await client.call((await ofReviews()).ListReviews, query)).reviews
    },
  }
}

/** Starts a new run at once. Everything else, and the calls of others, wait for the server. */
async function inProcess(host: CommandHost): Promise<HomeRunner> {
  const [{ loadTeam, startBundle }, { ownFiles }, { localName, userName }] = await Promise.all([
    import('../../runs/start-run.ts'),
    import('../../runs/own-files.ts'),
    import('../../home/local-name.ts'),
  ])
  const { daemon } = host
  return {
    ...servedBy(host.client, daemon.home),
    host,
    async prepare(which) {
      const bundle = await loadTeam(daemon, which)
      return {
        inputs: bundle.team(bundle.root).inputs,
        ownFiles: ownFiles(daemon, bundle),
        newId: async () => daemon.engine.store.runs.newId(),
        async start(runId, request) {
          const record = await startBundle(
            daemon,
            bundle,
            { ...which, ...request },
            { local: true, actor: localName(), startedBy: { kind: 'person', name: userName(), via: 'cli' }, runId },
          )
          host.serveSoon()
          return record
        },
      }
    },
  }
}
