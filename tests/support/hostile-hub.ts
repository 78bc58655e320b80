// A hub that says whatever a test wants, over real HTTP: it enrols a daemon, gives it jobs of any form, and keeps what
// the daemon answers.

import { inOrder, packageDigest } from '../../lib/wire/records/package-files.ts'
import type { PackageFile } from '../../lib/wire/records/packages.ts'
import { until } from './bounded.ts'

/** An answer about a job: `accepted`, `done` or `failed`. */
export interface Answered {
  job_id: string
  lease_id: string
  status: string
  error?: string
}

export interface HostileHub {
  readonly url: string
  /** What a daemon needs to enrol. */
  readonly env: Record<string, string>
  readonly answers: Answered[]
  /** The last body of register or heartbeat that had this field. */
  told(field: string): unknown
  /** What the daemon reported with runs/sync. */
  readonly changes: { run_id: string; kind: string }[]
  /** Changes what a call answers; the first part of its path is left out: `teams/download`. */
  lie: (call: string, data: unknown) => unknown
  /** Delivers jobs with the next poll. They are sent as they are. */
  deliver(...jobs: unknown[]): void
  /** Publishes `@scope/name@1.0.0`, and returns what a job says of it. */
  publish(name: string, team: string | Record<string, string>): { team: string; sha256: string }
  /** The last answer about a job that is not `accepted`. */
  outcome(jobId: string): Promise<Answered>
  stop(): Promise<void>
}

const POLL_MS = 500

export function startHostileHub(): HostileHub {
  const token = `cadre_dt_${'x'.repeat(43)}`
  const ids = { daemon: crypto.randomUUID(), realm: crypto.randomUUID() }
  const packages = new Map<string, { sha256: string; files: PackageFile[] }>()
  const answers: Answered[] = []
  const changes: HostileHub['changes'] = []
  const told: Record<string, unknown> = {}
  let waiting: unknown[] = []
  const bulletin = () => ({
    ...{ dispatch_public_key: '', dispatch_keys: [], acl_version: '1', teams_version: `${packages.size}` },
    teams: [...packages.keys()],
    approved: true,
  })
  // biome-ignore lint/suspicious/noExplicitAny: the bodies of all calls.
  const routes: Record<string, (body: any, signal: AbortSignal) => unknown> = {
    '/v1/daemons/register'(body) {
      Object.assign(told, body)
      const acl = { realm_id: ids.realm, allowed: [], dispatch_public_key: '', daemon_id: ids.daemon }
      return { daemon_id: ids.daemon, realm_id: ids.realm, ...bulletin(), acl }
    },
    '/v1/daemons/heartbeat'(body) {
      Object.assign(told, body)
      return { status: 'online', server_time: Date.now(), next_ms: 200, ...bulletin() }
    },
    async '/v1/daemons/poll'({ wait_ms = 0 }, signal) {
      for (const end = Date.now() + Math.min(wait_ms, POLL_MS); waiting.length === 0 && Date.now() < end; ) {
        await Bun.sleep(10)
      }
      // A daemon that has been stopped meanwhile takes no job away from the one that was started after it.
      if (signal.aborted) return { jobs: [] }
      const jobs = waiting
      waiting = []
      return { jobs }
    },
    '/v1/daemons/ack'({ others = [], ...first }) {
      answers.push(first, ...others)
      const { job_id, status } = first
      return { id: job_id, job_id, status, others: others.map((each: Answered) => ({ ...each, error: null })) }
    },
    '/v1/runs/sync'({ from_seq, changes: some }) {
      changes.push(...some)
      return { acked_seq: from_seq + some.length - 1, rejected: [] }
    },
    '/v1/teams/download'({ team }) {
      const [, name] = /^(@[^@]+)/.exec(team) ?? []
      const found = packages.get(name ?? '')
      return found && { name, version: '1.0.0', ...found }
    },
  }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const data = await routes[pathname]?.(await request.json(), request.signal)
      if (data) return Response.json({ ok: true, data: hub.lie(pathname.slice('/v1/'.length), data) })
      return Response.json({ ok: false, error: { code: 'not_found', message: 'not here' } }, { status: 404 })
    },
  })
  const hub: HostileHub = {
    lie: (_, data) => data,
    url: server.url.origin,
    env: { CADRE_HUB_URL: server.url.origin, CADRE_REALM_TOKEN: token },
    answers,
    changes,
    told: field => told[field],
    deliver: (...jobs) => void waiting.push(...jobs),
    publish(name, team) {
      const contents = typeof team === 'string' ? { 'team.yml': team } : team
      const files = inOrder(
        Object.entries(contents).map(([path, text]) => ({
          path,
          content_base64: Buffer.from(text).toString('base64'),
        })),
      )
      const sha256 = packageDigest(files)
      packages.set(name, { sha256, files })
      return { team: `${name}@1.0.0`, sha256 }
    },
    async outcome(jobId) {
      const of = () => answers.findLast(({ job_id, status }) => job_id === jobId && status !== 'accepted')
      await until(() => of() !== undefined, `the outcome of job ${jobId}`)
      return of()!
    },
    stop: () => server.stop(true),
  }
  return hub
}

/** A job as a hub gives it. `more` replaces any part. */
export function jobOf(kind: string, payload: object, more: object = {}) {
  return {
    ...{ job_id: crypto.randomUUID(), lease_id: crypto.randomUUID(), run_id: Bun.randomUUIDv7() as string },
    ...{ attempt: 1, lease_until: Date.now() + 60_000, kind, payload },
    ...more,
  }
}

/** The order to run a package that the hub has published. */
export const runOrder = (published: { team: string; sha256: string }, more: object = {}) => ({
  ...published,
  ...{ inputs: {}, run_name: null, workspace: null },
  ...more,
})
