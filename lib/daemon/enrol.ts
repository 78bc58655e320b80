// What a daemon with a hub does at its start: it checks its key, opens the link, stores the enrolment, and does the jobs
// that come over the link. It is loaded with the address of a hub only.

import { hostname } from 'node:os'
import { CadreError, messageOf } from '../error.ts'
import { Whoami } from '../wire/hub-calls.ts'
import { noSession, refuseSessionForm } from './api-key.ts'
import { artifactFile } from './artifact-file.ts'
import { resumeRun } from './cancel-resume.ts'
import type { Daemon } from './daemon.ts'
import { HubClient, type JobHost, Link } from './link/link.ts'
import { Offers } from './offers.ts'
import { answerReview, findReview } from './reviews.ts'
import { startRun } from './start-run.ts'
import { version } from './version.ts'

type Environment = Record<string, string | undefined>

/** The hub and token with which the daemon is enrolled, from the environment or from the settings. */
export interface Enrolment {
  url: string
  realmToken: string
  /** Whether the token comes from the settings. */
  remembered: boolean
}

/** Opens the link. Throws the hub's error when the hub refuses the token. */
export async function enrol(
  daemon: Daemon,
  { url, realmToken, remembered }: Enrolment,
  apiKey: string | null,
  env: Environment,
) {
  const offers = new Offers(daemon)
  const link = new Link({
    hubUrl: url,
    realmToken,
    name: env.CADRE_DAEMON_NAME || hostname(),
    version,
    capacity: daemon.slots,
    isDiskFull: () => daemon.engine.load.stalled !== null,
    log: daemon.log,
    store: daemon.engine.store,
    commit: daemon.engine.commit,
    outbox: daemon.outbox,
    pinnedKey: env.CADRE_DISPATCH_PUBLIC_KEY || null,
    jobs: jobHost(daemon),
    offers,
    fileOf: (runId, path) => artifactFile(daemon.engine.stateDir(runId), runId, path),
    networkAllow: () => daemon.settings.networkAllow(),
    enrolled: () => remember(daemon, url, realmToken),
  })
  daemon.remote = link
  daemon.packages.source = { client: link.client, token: apiKey || realmToken }
  try {
    await link.start()
    offers.start()
  } catch (error) {
    const refused = error instanceof CadreError && ['unauthorized', 'forbidden'].includes(error.code)
    if (!remembered || !refused) throw error
    const way = '`enrol` stores another, and `settings set hub.realm_token` without a value removes it'
    throw new CadreError(error.code, `the hub refuses hub.realm_token of settings.yml: ${error.message}; ${way}`)
  }
  return link
}

/** Stores what the hub has accepted, so that the next start needs no environment. */
async function remember({ settings, catalogue, log }: Daemon, url: string, realmToken: string): Promise<void> {
  try {
    for (const [key, value] of [
      ['hub.url', url],
      ['hub.realm_token', realmToken],
    ] as const) {
      if (settings.value(key) !== value) await settings.set(key, value, catalogue)
    }
  } catch (error) {
    log.warn('the enrolment could not be stored: the next start needs the environment again', {
      error: messageOf(error),
    })
  }
}

/** Asks the hub whether a key is a session token, because the tokens of older hubs have no form that shows it. */
export async function refuseSession(url: string, apiKey: string, daemon: Daemon): Promise<void> {
  refuseSessionForm(apiKey)
  try {
    const { kind } = await new HubClient(url, apiKey).call(Whoami, {})
    if (kind !== 'session') return
  } catch (error) {
    if (error instanceof CadreError && error.code === 'unavailable') {
      daemon.log.warn('the hub does not answer, so the api key was not checked')
      return
    }
    throw error
  }
  throw noSession()
}

function jobHost(daemon: Daemon): JobHost {
  const { engine } = daemon
  return {
    freeSlots: () => engine.load.free,
    mask: payload => daemon.mask(payload),
    attempt: runId => engine.store.runs.attempt(runId),
    prepare: ({ team, sha256 }) => daemon.packages.require(team, sha256),
    async start(runId, { team, inputs, run_name, workspace }) {
      await startRun(daemon, { team, inputs, run_name, workspace }, { local: false, runId, synced: true })
    },
    ended: runId => engine.ended(runId),
    async cancel(runId, again, reason) {
      const run = engine.store.runs.get(runId)
      // A second cancel would end phases that clean up.
      if (run?.state === 'cancelled' || ((again || reason !== null) && run?.ending != null)) return
      await engine.cancel(runId, reason ?? undefined)
    },
    resume: async (runId, from) => resumeRun(daemon, engine.record(runId).run_id, { from, failed: false }),
    async decide(reviewId, { decision, by, comment, values }) {
      const review = findReview(engine, reviewId)
      // The order was delivered twice.
      if (review.state === 'decided' && review.decision === decision && review.decided_by === by) return
      const answer = { decision, by, ...(comment !== undefined && { comment }), ...(values && { values }) }
      await answerReview({ engine, takeUp: runId => daemon.takeUp(runId) }, review, answer)
    },
  }
}
