// What the calls of a daemon to its hub share (lib/wire/calls/daemon-link.ts), and the errors by which a daemon recognizes
// what became of it at the hub.

import type { Static } from 'typebox'
import { CadreError } from '../error.ts'
import { named } from '../schema/schema.ts'
import { Type } from '../schema/type.ts'
import { AnyText, Time } from './parts.ts'
import { MOVED, REMOVED_DAEMON, UNKNOWN_DAEMON } from './reasons.ts'

/** Calls of daemons name the daemon here too, for a hub that does not know their token. */
export const CALLER_HEADER = 'x-cadre-daemon'

/** How many milliseconds a daemon waits for the answer of its hub, unless a call says otherwise. */
export const HUB_PATIENCE_MS = 20_000

/** The version of this protocol. */
export const PROTOCOL = 1
/** The property of a body that says which version the daemon speaks. */
export const ProtocolVersion = Type.Optional(Type.Integer())

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
 * `approved` says whether the daemon gets jobs. Older hubs give jobs to every daemon and do not send it, nor `paused`. `artifacts` says
 * whether the hub keeps files of runs; older hubs do not.
 */
export const BULLETIN = {
  dispatch_public_key: AnyText,
  dispatch_keys: Type.Array(PublicKey),
  acl_version: AnyText,
  teams_version: AnyText,
  teams: Type.Optional(Type.Array(AnyText)),
  approved: Type.Optional(Type.Boolean()),
  paused: Type.Optional(
    Type.Boolean({ description: 'Whether an operator has paused the daemon, which then takes no more runs.' }),
  ),
  artifacts: Type.Optional(Type.Boolean({ description: 'Whether the hub keeps files of runs.' })),
  examine: Type.Optional(
    Type.Integer({
      description:
        'When an operator asked that its doctors look now, in epoch milliseconds, until it says that they have.',
    }),
  ),
  clock_believed: Type.Optional(Type.Boolean({ description: 'Whether the hub has reason to believe its own clock.' })),
  ...MEMORY,
}
const Bulletin = Type.Object(BULLETIN)
export type Bulletin = Static<typeof Bulletin>

const CALLER = '/daemon_id'
// Hubs and daemons of 0.1.0 know no reason and distinguish the two by these words, which therefore must not change.
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
    details: [{ path: ACKED, message: String(acked), value: acked }],
  })
}

/**
 * The number of the last change that the hub has applied, if `error` refuses a batch because of a gap. Null for other
 * errors.
 */
export function ackedOf(error: unknown): number | null {
  if (!(error instanceof CadreError) || error.code !== 'conflict') return null
  const detail = error.details?.find(({ path }) => path === ACKED)
  // Hubs of 0.1.0 send the number only as the message, and daemons of 0.1.0 read only that, so `gap` sends both.
  const acked = detail?.value ?? Number(detail?.message)
  return Number.isSafeInteger(acked) ? acked : null
}
