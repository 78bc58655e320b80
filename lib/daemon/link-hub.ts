// The daemon's side of its hub: what the environment says of it, the link, and the jobs that come over it.

import { hostname } from 'node:os'
import { CadreError } from '../error.ts'
import type { Json } from '../json.ts'
import { Whoami } from '../wire/hub-calls.ts'
import { noSession, refuseSessionForm } from './api-key.ts'
import type { Daemon } from './daemon.ts'
import { HubClient, type JobHost, Link } from './link/link.ts'
import { answerReview, findReview } from './reviews.ts'
import { startRun } from './start-run.ts'
import { version } from './version.ts'

type Environment = Record<string, string | undefined>

/**
 * Links the daemon to its hub: null without `CADRE_HUB_URL` and `CADRE_REALM_TOKEN`. Throws `invalid_request` when a
 * credential is of the wrong kind, and what the hub answers when it refuses the token.
 */
export async function linkHub(daemon: Daemon, env: Environment): Promise<Link | null> {
  const url = env.CADRE_HUB_URL
  await daemon.settings.prepare(['hub'])
  const apiKey = env.CADRE_API_KEY || textOf(daemon.settings.value('hub.api_key'))
  refuseSessionForm(apiKey ?? undefined)
  const realmToken = env.CADRE_REALM_TOKEN
  if (!url) {
    if (realmToken) daemon.log.warn('CADRE_REALM_TOKEN is set without CADRE_HUB_URL: the daemon works alone')
    return null
  }
  if (apiKey) await refuseSession(url, apiKey, daemon)
  daemon.checkSetting = async (key, value) => {
    if (key === 'hub.api_key' && typeof value === 'string') await refuseSession(url, value, daemon)
  }
  if (!realmToken) {
    daemon.log.warn('CADRE_HUB_URL is set without CADRE_REALM_TOKEN: the daemon takes no jobs and syncs no runs')
    return null
  }
  if (!realmToken.startsWith('cadre_dt_')) {
    throw new CadreError(
      'invalid_request',
      'CADRE_REALM_TOKEN is no realm token (cadre_dt_…): mint one with type realm',
    )
  }
  const link = new Link({
    hubUrl: url,
    realmToken,
    name: env.CADRE_DAEMON_NAME || hostname(),
    version,
    log: daemon.log,
    store: daemon.engine.store,
    outbox: daemon.outbox,
    phasesOf: row => daemon.engine.bundle(row.bundle_id).team(row.team_key).phases,
    pinnedKey: env.CADRE_DISPATCH_PUBLIC_KEY || null,
    jobs: jobHost(daemon),
    agents: () => daemon.catalogue.names().map(name => ({ name, version: daemon.catalogue.get(name)!.version })),
    workspaces: () => daemon.workspaces.names(),
  })
  daemon.remote = link
  daemon.packages.source = { client: link.client, token: apiKey || realmToken }
  await link.start()
  return link
}

const textOf = (value: Json | undefined): string | null => (typeof value === 'string' && value !== '' ? value : null)

/** Tokens of older hubs do not show by themselves what they are. */
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
    async start(runId, { team, sha256, inputs, run_name, workspace }) {
      if (engine.store.runs.get(runId)) return
      await daemon.packages.require(team, sha256)
      await startRun(daemon, { team, inputs, run_name, workspace }, { local: false, runId, synced: true })
    },
    ended: runId => engine.ended(runId),
    cancel: runId => engine.cancel(runId),
    resume: (runId, from) => engine.resume(runId, { from }),
    async decide(reviewId, { decision, by, comment, values }) {
      const review = findReview(engine, reviewId)
      // Delivered twice.
      if (review.state === 'decided' && review.decision === decision && review.decided_by === by) return
      const answer = { decision, by, ...(comment !== undefined && { comment }), ...(values && { values }) }
      await answerReview({ engine, takeUp: runId => daemon.takeUp(runId) }, review, answer)
    },
  }
}
