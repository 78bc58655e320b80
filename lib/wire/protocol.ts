// The calls of a daemon to its hub, with a realm token. The daemon always calls. Bodies and replies ignore unknown
// properties, so that either side may be newer.

import type { Static } from 'typebox'
import { CadreError } from '../error.ts'
import { named, nullable } from '../schema/schema.ts'
import { Type } from '../schema/type.ts'
import { bareCall, ErrorReply } from './call.ts'
import { Title, Version } from './names.ts'
import type { OfferedAgent } from './needs.ts'
import { AnyText, Text, Time, Uuid } from './parts.ts'
import { MOVED, REMOVED_DAEMON, UNKNOWN_DAEMON } from './reasons.ts'

/** Calls of daemons name the daemon here too, for a hub that does not know their token. */
export const CALLER_HEADER = 'x-cadre-daemon'

/** The version of this protocol. */
export const PROTOCOL = 1
const Protocol = Type.Optional(Type.Integer())

/** A public key in the form that daemons get. */
export const PublicKey = named('dispatch_key', { kid: AnyText, pem: AnyText, not_after: Type.Optional(Time) })
export type PublicKey = Static<typeof PublicKey>

/** Who may call a daemon of a realm from other machines, and the keys that verify their tokens. */
export const AccessList = named('acl', {
  realm_id: AnyText,
  allowed: Type.Array(AnyText),
  dispatch_public_key: AnyText,
  daemon_id: AnyText,
})
export type AccessList = Static<typeof AccessList>

/**
 * How much the hub has committed, by a count that only grows, and which database it has. A daemon keeps the highest count
 * of each database and sends it with its next call, so that a hub on an older copy finds out. `recall` asks the daemon to
 * send everything that it has, once for each value.
 */
const Remembered = Type.Object({
  lineage: Type.String({ maxLength: 100, description: 'Which database this is; copies of it have the same.' }),
  count: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'How much the hub has committed.',
  }),
  mac: Type.String({ maxLength: 200, description: 'Signs the count.' }),
  recall: Type.Optional(
    Type.String({
      maxLength: 100,
      description: 'The older copy for which the daemon has to send everything that it has.',
    }),
  ),
})
export type Remembered = Static<typeof Remembered>
export const MEMORY = {
  memory: Type.Optional(
    Type.Object(Remembered.properties, { description: 'How much the hub has committed, and which database it has.' }),
  ),
}

/**
 * What register and heartbeat both return. `teams` is present when the daemon has another version of the list.
 * `approved` says whether the daemon gets jobs. Older hubs give jobs to every daemon and do not send it. `artifacts` says
 * whether the hub keeps files of runs; older hubs do not.
 */
export const BULLETIN = {
  dispatch_public_key: AnyText,
  dispatch_keys: Type.Array(PublicKey),
  acl_version: AnyText,
  teams_version: AnyText,
  teams: Type.Optional(Type.Array(AnyText)),
  approved: Type.Optional(Type.Boolean()),
  artifacts: Type.Optional(Type.Boolean({ description: 'Whether the hub keeps files of runs.' })),
  ...MEMORY,
}
const Bulletin = Type.Object(BULLETIN)
export type Bulletin = Static<typeof Bulletin>

/**
 * What the hub chooses a daemon by. In a heartbeat it is present when it has changed. Each name is held to its grammar
 * by itself (`offerOf`), so that one which does not fit keeps no daemon away.
 */
const OFFER = {
  agents: Type.Optional(Type.Unsafe<OfferedAgent[]>(Type.Array(Type.Unknown(), { maxItems: 1_000 }))),
  labels: Type.Optional(Type.Unsafe<Record<string, string>>(Type.Record(Type.String(), Type.Unknown()))),
  workspaces: Type.Optional(Type.Unsafe<string[]>(Type.Array(Type.Unknown(), { maxItems: 1_000 }))),
  sandbox: Type.Optional(
    Type.String({
      pattern: '^[a-z][a-z0-9_-]{0,39}$',
      'x-expected': 'a word such as bubblewrap',
      description: 'Where the commands of dispatched runs run: none, bubblewrap or container.',
    }),
  ),
}

/**
 * Which start of its home calls. Two homes of one daemon id differ in it, as those of a machine and of its snapshot do:
 * the hub serves the one that was started more often, and refuses the other.
 */
const START = {
  starts: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  start: Type.Optional(Type.Unsafe<string>({ ...Uuid, description: 'The id of this start of the home.' })),
}
export interface Start {
  starts?: number
  start?: string
}

export const Register = bareCall(
  '/v1/daemons/register',
  Type.Object({
    daemon_id: Type.Optional(Uuid),
    realm_id: Type.Optional(Uuid),
    name: Title(200),
    hostname: Type.Optional(Title(255)),
    version: Type.Optional(Version),
    protocol: Protocol,
    capacity: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000 })),
    ...START,
    ...OFFER,
    ...MEMORY,
    teams_version: Type.Optional(Type.Unknown()),
  }),
  Type.Object({ daemon_id: AnyText, realm_id: AnyText, ...BULLETIN, acl: AccessList }),
)

export const Heartbeat = bareCall(
  '/v1/daemons/heartbeat',
  Type.Object({
    daemon_id: Uuid,
    running: Type.Optional(Type.Array(Text(100), { maxItems: 10_000 })),
    clock: Type.Optional(Type.Number()),
    stuck: Type.Optional(Type.Boolean()),
    ...START,
    ...OFFER,
    ...MEMORY,
    protocol: Protocol,
    teams_version: Type.Optional(Type.Unknown()),
  }),
  Type.Object({ status: Type.Literal('online'), server_time: Time, next_ms: Type.Integer(), ...BULLETIN }),
)

/** The maximum number of slots that a poll asks for. A daemon with more polls again. */
export const MOST_SLOTS = 1_000

export const Poll = bareCall(
  '/v1/daemons/poll',
  Type.Object({
    daemon_id: Uuid,
    slots: Type.Optional(Type.Integer({ minimum: 0, maximum: MOST_SLOTS })),
    wait_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 30_000 })),
    full_disk: Type.Optional(
      Type.Boolean({ description: 'Whether the daemon takes no runs because its disk is full.' }),
    ),
    ...START,
    ...MEMORY,
    protocol: Protocol,
  }),
  /** Each job is checked against its own form (`AnyLeasedJob`). */
  Type.Object({ jobs: Type.Array(Type.Unknown()), ...MEMORY }),
)

const Answer = Type.Enum(['accepted', 'done', 'failed'])
export type Answer = Static<typeof Answer>

/** What became of a job. */
export const OUTCOME = {
  job_id: Text(100),
  lease_id: Text(100),
  status: Answer,
  error: Type.Optional(Type.String({ maxLength: 100_000 })),
}

/** The maximum number of answers that a call takes besides the first. */
export const MOST_OTHERS = 100

/**
 * Answers about one job, and in `others` about more of them. The reply to the first is that of the call. Each of the
 * others has its own, in the same order; an answer without a reply has to be repeated. Older hubs reply only to the first.
 */
export const Ack = bareCall(
  '/v1/daemons/ack',
  Type.Object({
    daemon_id: Uuid,
    ...OUTCOME,
    others: Type.Optional(
      Type.Array(Type.Object(OUTCOME), { maxItems: MOST_OTHERS, description: 'The same about more jobs.' }),
    ),
    ...MEMORY,
    protocol: Protocol,
  }),
  Type.Object({
    id: AnyText,
    job_id: AnyText,
    status: Answer,
    others: Type.Optional(
      Type.Array(
        Type.Object({
          job_id: AnyText,
          status: nullable(Answer),
          error: nullable(Type.Pick(ErrorReply, ['code', 'message'])),
        }),
        { description: 'What became of the other answers, in their order.' },
      ),
    ),
    ...MEMORY,
  }),
)

export const Deregister = bareCall(
  '/v1/daemons/deregister',
  Type.Object({ daemon_id: Uuid, protocol: Protocol }),
  Type.Object({ id: AnyText, daemon_id: AnyText }),
)

/**
 * Each change is checked against its own form (changes.ts), so that one that does not fit does not delay the others.
 */
export const Sync = bareCall(
  '/v1/runs/sync',
  Type.Object({
    daemon_id: Uuid,
    epoch: Uuid,
    from_seq: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    changes: Type.Array(Type.Unknown(), { maxItems: 10_000 }),
    reported: Type.Optional(
      Type.String({ maxLength: 100, description: 'The `recall` to which the daemon has sent everything by now.' }),
    ),
    ...MEMORY,
    protocol: Protocol,
  }),
  Type.Object({
    acked_seq: Type.Integer(),
    cut_lines: Type.Optional(
      Type.Integer({
        description: 'How many log lines were left out, because the realm has used up its quota of log bytes.',
      }),
    ),
    rejected: Type.Array(Type.Object({ seq: Type.Integer(), code: AnyText })),
    ...MEMORY,
  }),
)

/** A file that a run of the daemon has recorded. */
const OFFERED = {
  daemon_id: Uuid,
  run_id: Uuid,
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$', 'x-expected': 'a SHA-256 in hexadecimal' }),
  bytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
}

/**
 * Asks how to send a file. With `stored` the hub has it already. Otherwise it is sent with PUT and exactly these headers
 * to `url`, or to `PUT_FILE` of the hub when that is null.
 */
export const OfferFile = bareCall(
  '/v1/artifacts/offer',
  Type.Object({ ...OFFERED, protocol: Protocol }),
  Type.Object({
    stored: Type.Boolean(),
    upload: nullable(Type.Object({ url: nullable(AnyText), headers: Type.Record(Type.String(), AnyText) })),
  }),
)

/** Reports that a file was sent. The hub looks for it in its store. */
export const KeepFile = bareCall(
  '/v1/artifacts/keep',
  Type.Object({ ...OFFERED, protocol: Protocol }),
  Type.Object({ stored: Type.Literal(true) }),
)

/** Takes a file as the body of a PUT. */
export const PUT_FILE = '/v1/artifacts/put'
/** The query of `PUT_FILE`, in which numbers are text. */
export const PutFile = Type.Object({
  ...OFFERED,
  bytes: Type.String({ pattern: '^(0|[1-9][0-9]{0,14})$', 'x-expected': 'a number of bytes' }),
})

const CALLER = '/daemon_id'
// Hubs and daemons of 0.1.0 know no reason and tell the two apart by these words, which therefore must not change.
const UNKNOWN = 'is not the id of a daemon'
const REMOVED = 'is the id of a daemon that was removed'

/** The error for the id of a daemon that the hub does not have, as after the restoration of an older copy. */
export function unknownDaemon(id: string): CadreError {
  return new CadreError('not_found', `there is no daemon ${id}; register it`, {
    reason: UNKNOWN_DAEMON,
    details: [{ path: CALLER, message: UNKNOWN }],
  })
}

/** The error for the id of a daemon that somebody has removed. It stays away until a person starts it again. */
export function removedDaemon(id: string): CadreError {
  return new CadreError('not_found', `daemon ${id} was removed: start it again to register it`, {
    reason: REMOVED_DAEMON,
    details: [{ path: CALLER, message: REMOVED }],
  })
}

function absence(error: unknown): string | undefined {
  if (!(error instanceof CadreError)) return undefined
  if (error.reason !== undefined) return error.reason
  const words = error.details?.find(({ path }) => path === CALLER)?.message
  return words === UNKNOWN ? UNKNOWN_DAEMON : words === REMOVED ? REMOVED_DAEMON : undefined
}

export const isUnknownDaemon = (error: unknown): boolean => absence(error) === UNKNOWN_DAEMON
/** Whether it is one of these two errors. */
export const isAbsentDaemon = (error: unknown): boolean => isUnknownDaemon(error) || absence(error) === REMOVED_DAEMON

/** The error for a daemon of whose home a later start has called. `host` is where that one runs, if it has said so. */
export function movedDaemon(id: string, host: string | null): CadreError {
  const where = host === null ? 'elsewhere' : `on ${host}`
  return new CadreError(
    'conflict',
    `daemon ${id} goes on ${where}: its home was moved, or the machine was copied with it. Stop one of the two. If this one is to go on, stop it, call \`home moved\` in its home, and start it again`,
    { reason: MOVED },
  )
}

export const isMoved = (error: unknown): boolean => error instanceof CadreError && error.reason === MOVED

const ACKED = '/acked_seq'

/** The error for a batch that does not begin with the change after the last applied one. */
export function gap(acked: number, from: number): CadreError {
  return new CadreError('conflict', `gap: expected change ${acked + 1}, got ${from}; acked_seq is ${acked}`, {
    details: [{ path: ACKED, message: String(acked) }],
  })
}

/**
 * The number of the last change that the hub has applied, if `error` refuses a batch because of a gap. Null for other
 * errors.
 */
export function ackedOf(error: unknown): number | null {
  if (!(error instanceof CadreError) || error.code !== 'conflict') return null
  const detail = error.details?.find(({ path }) => path === ACKED)
  const acked = detail === undefined ? Number.NaN : Number(detail.message)
  return Number.isSafeInteger(acked) ? acked : null
}
