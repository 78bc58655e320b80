// Credentials of callers from other machines: a dispatch token that the hub signed for this daemon, or the token of a
// user of its realm. A forged, foreign, used or expired credential gets the same reply as a missing one.

import type { CryptoKey } from 'jose'
import { CadreError } from '../../error.ts'
import { matches } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import type { RemoteAction } from '../../wire/access.ts'
import type { Identity } from '../../wire/calls/auth.ts'
import type { HubLink } from '../../wire/calls/process.ts'
import type { PublicKey } from '../../wire/protocol.ts'
import type { UsedTokens } from './used-tokens.ts'

/** What is said of the link to those who ask. */
export type LinkStanding = Pick<HubLink, 'paused' | 'troubles'> & { url: string }

/** The part of the link to the hub that the daemon needs. */
export interface Remote {
  /** Known once the daemon is enrolled. */
  readonly daemonId: string | null
  readonly realmId: string | null
  /** Whether a heartbeat was answered within the last 45 s. */
  connected(): boolean
  standing(): LinkStanding
  /** Whether the link was opened with this realm token. */
  uses(token: string): boolean
  /**
   * The keys in memory: only the configured key, or the current and the previous key of the hub. An empty `kid` means
   * that the key was configured here and fits any token.
   */
  keys(): readonly PublicKey[]
  /** Asks the hub for its keys, because a token may be signed with one that is newer than the last heartbeat. */
  renewKeys(): Promise<void>
  /** Throws the hub's error, or `unavailable` when the hub does not answer. */
  whoami(token: string): Promise<Identity>
  /** Whether runs of this team (`@scope/name`) are reported to the hub. */
  lists(team: string): boolean
  stop(): Promise<void>
}

export interface Credential {
  name: string
  actions: readonly RemoteAction[]
  runId: string | null
  /** The name of a token that is not that of a session. Null for a person, and when the hub does not say. */
  token: string | null
  /** Marks a token that counts once as used. Throws `unauthorized` the second time. */
  spend?(): void
}

export interface Credentials {
  connected(): boolean
  /** Throws `unauthorized`. */
  check(bearer: string): Promise<Credential>
  /**
   * The same check for calls that last, such as a stream: the credential as the hub sees it now, and never past its
   * expiry. Returns null when the hub does not answer.
   */
  again(bearer: string): Promise<Credential | null>
}

export const NO_CREDENTIAL =
  'from another machine this call needs a dispatch token or the token of a user of the daemon’s realm, as Bearer'
const BAD_CREDENTIAL = 'the credential is not valid here: it is malformed, unknown, expired, or for another daemon'

const USER_TOKEN = /^cadre_tok_[0-9A-Za-z]{40,}$/
/** Base64url without padding. jose would also take padding and spaces, and one token would have many spellings. */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/
/** What a dispatch token says. A claim of another type counts as a forgery, never as an absent one. */
const Claims = Type.Object({
  action: Type.Enum(['access', 'execute', 'cancel']),
  sub: Type.String({ minLength: 1 }),
  realm_id: Type.String(),
  /** The role of the caller in the realm, from memberships alone. Older hubs do not send it. */
  realm_role: Type.Optional(Type.Enum(['none', 'member', 'operator', 'admin'])),
  run_id: Type.Optional(Type.String()),
  exp: Type.Number(),
  jti: Type.String({ minLength: 1 }),
})
const WHOAMI_MS = 60_000
/** A reply of the hub that is at most this old is used for streams, so that many streams of one token ask once. */
const AGAIN_MS = 1_000
const MOST_KNOWN = 1_000
const TOLERANCE_S = 30

/** `remote` returns null as long as the daemon has no hub. */
export function createCredentials(
  remote: () => Remote | null,
  used: UsedTokens,
  now: () => number = Date.now,
  /** A clock that never steps. */
  monotonic: () => number = () => performance.now(),
): Credentials {
  /** The user tokens that the hub vouched for, by their digest, and when it did by the monotonic clock. */
  const known = new Map<string, { askedAt: number; expires: number; credential: Credential }>()
  const imported = new Map<string, Promise<CryptoKey>>()

  return {
    connected: () => remote()?.connected() ?? false,
    check: bearer => look(bearer, WHOAMI_MS, TOLERANCE_S),
    async again(bearer) {
      // Known without the hub, which may be away.
      if (now() >= (known.get(digest(bearer))?.expires ?? Number.POSITIVE_INFINITY)) throw bad()
      return look(bearer, AGAIN_MS, 0).catch(error => {
        if (error instanceof CadreError && error.code === 'unavailable') return null
        throw error
      })
    },
  }

  async function look(bearer: string, maxAge: number, tolerance: number): Promise<Credential> {
    if (bearer.startsWith('cadre_tok_')) return userToken(bearer, maxAge)
    if (JWT.test(bearer)) return dispatchToken(bearer, tolerance)
    throw bad()
  }

  async function userToken(token: string, maxAge: number): Promise<Credential> {
    if (!USER_TOKEN.test(token)) throw bad()
    const hub = remote()
    if (!hub?.connected()) throw new CadreError('unavailable', 'this daemon is not connected to its hub')
    const hash = digest(token)
    const fresh = known.get(hash)
    if (fresh && monotonic() < fresh.askedAt + maxAge && now() < fresh.expires) return fresh.credential
    const askedAt = monotonic()
    const reply = await hub.whoami(token).catch(refusal)
    if (reply.type !== 'user' || !reply.user || !reply.realm_role) throw bad()
    const credential = { name: reply.user.username, actions: actionsOf(reply), runId: null, token: nameOf(reply) }
    if (known.size >= MOST_KNOWN) known.clear()
    known.set(hash, { askedAt, expires: reply.expires_at ?? Number.POSITIVE_INFINITY, credential })
    return credential
  }

  async function dispatchToken(token: string, tolerance: number): Promise<Credential> {
    const hub = remote()
    if (!hub?.daemonId) throw bad()
    const { jwtVerify } = await import('jose')
    const known = (kid: string | undefined) =>
      hub.keys().find(each => (each.kid || kid) === kid && (each.not_after ?? Number.POSITIVE_INFINITY) > now())
    const keyOf = async ({ kid }: { kid?: string }): Promise<CryptoKey> => {
      if (!known(kid)) await hub.renewKeys()
      const key = known(kid)
      if (!key) throw bad()
      return importKey(key.pem)
    }
    const { payload } = await jwtVerify(token, keyOf, {
      algorithms: ['EdDSA'],
      typ: 'dispatch+jwt',
      issuer: 'cadre-hub',
      audience: hub.daemonId,
      clockTolerance: tolerance,
      currentDate: new Date(now()),
    }).catch(() => {
      throw bad()
    })
    if (!matches(Claims, payload) || payload.realm_id !== hub.realmId) throw bad()
    const { action, realm_role, run_id: runId = null, jti, sub, exp } = payload
    if (realm_role === 'none') throw bad()
    const mayNot = realm_role === 'member' && action !== 'access'
    const credential = { name: sub, actions: mayNot ? [] : [action], runId, token: null }
    if (action !== 'execute') return credential
    return { ...credential, spend: () => spend(jti, (exp + TOLERANCE_S) * 1_000) }
  }

  /** Marks a token that starts work as used, because it counts only once. */
  function spend(jti: string, until: number): void {
    if (!used.use(jti, until)) throw bad()
  }

  async function importKey(pem: string): Promise<CryptoKey> {
    const { importSPKI } = await import('jose')
    const key = imported.get(pem) ?? importSPKI(pem, 'EdDSA')
    imported.set(pem, key)
    return key
  }
}

const digest = (token: string): string => new Bun.CryptoHasher('sha256').update(token).digest('hex')

const bad = () => new CadreError('unauthorized', BAD_CREDENTIAL)

/** Passes on the hub's refusal of a token. A hub that does not answer has not refused it. */
function refusal(thrown: unknown): never {
  throw thrown instanceof CadreError && thrown.status < 500 ? bad() : thrown
}

/** Hubs of 0.1.0 do not say the name. */
const nameOf = ({ kind, name }: Identity): string | null => (kind === 'session' ? null : (name ?? null))

/** Reading needs `runs` read. Starting and cancelling need `runs` write and at least the role of an operator. */
function actionsOf({ permissions, realm_role }: Identity): RemoteAction[] {
  const runs = permissions.access?.runs ?? []
  if (runs.length === 0) return []
  const writes = runs.includes('write') || runs.includes('admin')
  return writes && realm_role !== 'member' ? ['access', 'execute', 'cancel'] : ['access']
}
