// What a daemon with a hub does at its start: it checks its key, opens the link, stores the enrolment, and does the jobs
// that come over the link. It is loaded with the address of a hub only.

import { hostname } from 'node:os'
import { CadreError, messageOf } from '../../error.ts'
import type { RunId } from '../../files/run-id.ts'
import { version } from '../../program/version.ts'
import type { RunRow } from '../../run/engine.ts'
import { Whoami } from '../../wire/calls/auth.ts'
import { readStarter } from '../../wire/records/started-by.ts'
import { noSession, refuseSessionForm } from '../access/api-key.ts'
import { type Enrolment, HubCredentials, storeEnrolment } from '../access/hub-credentials.ts'
import { hubActor } from '../home/audit.ts'
import { localName } from '../home/local-name.ts'
import { openArtifact } from '../runs/artifact-file.ts'
import { resumeRun } from '../runs/cancel-resume.ts'
import type { Daemon } from '../runs/daemon.ts'
import { answerReview } from '../runs/reviews.ts'
import { startRun } from '../runs/start-run.ts'
import { HubClient } from './hub-client.ts'
import type { JobHost } from './jobs.ts'
import { Link } from './link.ts'
import { Offers } from './offers.ts'
import { OwnStanding, ownStanding } from './own-standing.ts'
import { packagesOfHub } from './package-source.ts'

type Environment = Record<string, string | undefined>

/** Opens the link. Throws the hub's error when the hub refuses the token. */
export async function enrol(daemon: Daemon, { url, realmToken, remembered, apiKey }: Enrolment, env: Environment) {
  const offers = new Offers(daemon)
  const name = env.CADRE_DAEMON_NAME || hostname()
  const link = new Link({
    hubUrl: url,
    realmToken,
    name,
    version,
    capacity: daemon.slots,
    isDiskFull: () => daemon.engine.load.stalled !== null,
    log: daemon.log,
    store: daemon.engine.store,
    commit: daemon.engine.commit,
    lived: () => daemon.engine.lived,
    confirmed: () => void daemon.ages.confirm().catch(() => {}),
    outbox: daemon.outbox,
    pinnedKey: env.CADRE_DISPATCH_PUBLIC_KEY || null,
    jobs: jobHost(daemon),
    offers,
    async fileOf(runId, path) {
      await daemon.engine.writeFiles(runId)
      if (daemon.engine.unwrittenFile(runId, path)) {
        throw new CadreError('conflict', 'it is not written yet, because the disk takes no files')
      }
      return openArtifact(daemon.engine.stateDir(runId), runId, path)
    },
    network: () => daemon.settings.network(),
    standing: new OwnStanding(() => ownStanding(daemon, offers.credentials), daemon.log),
    async enrolled() {
      describeWorker()
      await remember(daemon, url, realmToken)
    },
  })
  // An earlier process may have been enrolled.
  describeWorker()
  daemon.remote = link
  daemon.packages.source = packagesOfHub(link.client, apiKey || realmToken)
  try {
    await link.start()
    offers.start()
    warnOfKept(daemon)
  } catch (error) {
    const refused = error instanceof CadreError && ['unauthorized', 'forbidden'].includes(error.code)
    if (!remembered || !refused) throw error
    const way = '`enrol` stores another, and `settings set hub.realm_token` without a value removes it'
    throw new CadreError(error.code, `the hub refuses hub.realm_token of settings.yml: ${error.message}; ${way}`)
  }
  return link

  /** Says in what is exported which daemon this is. */
  function describeWorker(): void {
    const { daemonId, realmId } = link
    daemon.telemetry?.describe({
      'cicd.worker.name': name,
      ...(daemonId !== null && { 'cicd.worker.id': daemonId }),
      ...(realmId !== null && { 'cadre.realm.id': realmId }),
    })
  }
}

/** Says which workspaces are offered to the realm although no person has said so, as those of homes of 0.1.0 are. */
function warnOfKept({ workspaces, log }: Daemon): void {
  const kept = workspaces.kept()
  if (kept.length === 0) return
  log.warn('workspaces are offered to the realm only because dispatched runs have used them', {
    workspaces: kept,
    keep: 'workspaces add FOLDER --offer',
    end: 'workspaces add FOLDER --no-offer',
  })
}

/** Stores what the hub has accepted, so that the next start needs no environment. */
async function remember(
  { settings, catalogue, log, engine, audit }: Daemon,
  url: string,
  realmToken: string,
): Promise<void> {
  try {
    if (settings.value('hub.url') === url && settings.value('hub.realm_token') === realmToken) return
    // An address may contain a password.
    const target = URL.parse(url)?.origin ?? null
    await engine.commit(() => audit.write({ actor: localName(), action: 'hub/enrol', target }))
    const store = (key: string, value: string | null) => settings.set(key, value, catalogue)
    await storeEnrolment(new HubCredentials(settings, {}), store, url, realmToken)
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
  const { runs, reviews } = engine.store
  const reportedRun = (runId: RunId): RunRow => {
    const row = runs.get(runId)
    if (row?.synced === 1) return row
    throw notReported(`run ${runId}`)
  }
  return {
    freeSlots: () => engine.load.free,
    mask: payload => daemon.mask(payload),
    attempt: runId => (runs.isSynced(runId) ? runs.attempt(runId) : null),
    async prepare({ team, sha256 }, runId) {
      // It would not begin, and the hub would hear of a run of this machine.
      if (runs.get(runId) && !runs.isSynced(runId))
        throw new CadreError('conflict', `the id of run ${runId} is taken here`)
      await daemon.packages.require(team, sha256)
    },
    async start(runId, { team, inputs, run_name, workspace, environment = null, started_by, traceparent, by }) {
      const startedBy = readStarter(started_by)
      const origin = {
        local: false,
        dispatched: true,
        actor: hubActor(by),
        startedBy,
        runId,
        synced: true,
        traceparent,
      }
      const request = { team, inputs, run_name, workspace, environment }
      const { reason, error } = await startRun(daemon, request, { ...origin, unattended: true })
      if (reason === 'not_started') {
        daemon.log.warn('a dispatched run could not begin', { run: runId, error: error?.message ?? null })
      }
    },
    ended: runId => engine.ended(reportedRun(runId).id),
    async cancel(runId, again, { reason, by }) {
      const run = reportedRun(runId)
      // A second cancel would end phases that clean up.
      if (run.state === 'cancelled' || ((again || reason !== undefined) && run.ending !== null)) return
      const entry = { actor: hubActor(by), action: 'runs/cancel', target: runId }
      await engine.cancel(runId, reason, () => daemon.audit.write(entry))
    },
    async resume(runId, { from_phase: from = null, failed = false, outputs = false, by }) {
      await resumeRun(daemon, reportedRun(runId).id, { actor: hubActor(by), from, failed, outputs })
    },
    async decide(reviewId, { decision, by, comment, values }) {
      const review = reviews.get(reviewId)
      if (!review || !runs.isSynced(review.run_id)) throw notReported(`review ${reviewId}`)
      // The order was delivered twice.
      if (review.state === 'decided' && review.decision === decision && review.decided_by === by) return
      const answer = { decision, by, ...(comment !== undefined && { comment }), ...(values && { values }) }
      await answerReview(daemon, review, answer, hubActor(by))
    },
    tell: (id, { account, text }) => {
      const about = { id, name: 'notify.on_fail', state: 'failed', reason: null }
      return daemon.tells.tell(id, account, { text, subject: id, team: 'the hub', about })
    },
  }
}

/** The same error for what is not here and for what was not reported to the hub, which so learns nothing. */
const notReported = (what: string) =>
  new CadreError('not_found', `not_found: there is no ${what} of which this hub was told`)
