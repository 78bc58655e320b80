// The daemon's side of the hub: the enrolment from the environment or the settings, the link, and the jobs that come
// over it.

import { hostname } from 'node:os'
import { CadreError, messageOf } from '../error.ts'
import type { Json } from '../json.ts'
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
interface Enrolment {
  url: string
  realmToken: string
  /** Whether the token comes from the settings. */
  remembered: boolean
}

/**
 * Links the daemon to its hub. Returns null without an address and a realm token, which come from the environment, or
 * from the settings if an earlier start stored them. Throws `invalid_request` when a credential is of the wrong kind,
 * and the hub's error when the hub refuses the token.
 */
export async function linkHub(daemon: Daemon, env: Environment): Promise<Link | null> {
  const { settings } = daemon
  await settings.prepare(['hub'])
  const apiKey = env.CADRE_API_KEY || textOf(settings.value('hub.api_key'))
  refuseSessionForm(apiKey ?? undefined)
  const url = env.CADRE_HUB_URL || textOf(settings.value('hub.url'))
  if (!url) {
    if (env.CADRE_REALM_TOKEN) daemon.log.warn('CADRE_REALM_TOKEN is set without CADRE_HUB_URL: the daemon works alone')
    return null
  }
  if (apiKey) await refuseSession(url, apiKey, daemon)
  daemon.checkSetting = async (key, value) => {
    if (key === 'hub.api_key' && typeof value === 'string') await refuseSession(url, value, daemon)
  }
  const enrolment = enrolmentAt(url, daemon, env)
  return enrolment && enrol(daemon, enrolment, apiKey, env)
}

/** Where the home is enrolled, when it is, without any call. The settings `hub` must be prepared. */
export function enrolmentOf({ settings }: Daemon, env: Environment): Pick<Enrolment, 'url' | 'realmToken'> | null {
  const known = textOf(settings.value('hub.url'))
  const url = env.CADRE_HUB_URL || known
  if (!url) return null
  const stored = known && sameHub(known, url) ? textOf(settings.value('hub.realm_token')) : null
  const realmToken = env.CADRE_REALM_TOKEN || stored
  return realmToken ? { url, realmToken } : null
}

/** Null when there is no realm token for this hub. A stored token is used only for the hub that it was stored with. */
function enrolmentAt(url: string, { settings, log }: Daemon, env: Environment): Enrolment | null {
  if (env.CADRE_REALM_TOKEN) {
    refuseOtherToken(env.CADRE_REALM_TOKEN, 'CADRE_REALM_TOKEN')
    return { url, realmToken: env.CADRE_REALM_TOKEN, remembered: false }
  }
  const [known, realmToken] = [textOf(settings.value('hub.url')), textOf(settings.value('hub.realm_token'))]
  if (realmToken && known && sameHub(known, url)) return { url, realmToken, remembered: true }
  const why = realmToken ? ` (hub.realm_token is for ${known ?? 'another hub'})` : ''
  log.warn(`CADRE_HUB_URL is set without CADRE_REALM_TOKEN: the daemon takes no jobs and syncs no runs${why}`)
  return null
}

const sameHub = (a: string, b: string): boolean => a.replace(/\/+$/, '') === b.replace(/\/+$/, '')

/** Throws `invalid_request` for anything but a realm token. `name` says where the value comes from. */
export function refuseOtherToken(token: string, name: string): void {
  if (token.startsWith('cadre_dt_')) return
  throw new CadreError('invalid_request', `${name} must be a realm token (cadre_dt_…): mint one with type realm`)
}

async function enrol(
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

const textOf = (value: Json | undefined): string | null => (typeof value === 'string' && value !== '' ? value : null)

/** Asks the hub whether a key is a session token, because the tokens of older hubs have no form that shows it. */
async function refuseSession(url: string, apiKey: string, daemon: Daemon): Promise<void> {
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
