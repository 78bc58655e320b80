// Who may call the daemon. A caller on this machine needs no credential for runs and workspaces, and needs the local
// token for settings and decisions. A caller from another machine sends a dispatch token or a user token, and may do
// what that credential allows. A token that counts once is used up only by a call whose body is valid. A caller is "on
// this machine" if both the peer address of the socket and the Host header say so. The address alone is not enough: any
// web page can make a browser connect to loopback under a name of its own (DNS rebinding), and a proxy on this machine
// calls from loopback for strangers.

import { isLoopbackAddress } from '../../agent/net/address.ts'
import { CadreError } from '../../error.ts'
import type { Access, Incoming } from '../../http/admission.ts'
import { viaOf } from '../../http/via.ts'
import { sameSecret } from '../../secrets/secret-form.ts'
import type { DaemonAccess } from '../../wire/access.ts'
import type { StartedBy, Via } from '../../wire/records/started-by.ts'
import { hubActor } from '../home/audit.ts'
import { localName, userName } from '../home/local-name.ts'
import { type Credential, type Credentials, NO_CREDENTIAL } from './remote-credentials.ts'

export interface Caller {
  /** `local:<os user>`, or the user name that the hub vouches for. */
  name: string
  /** The same in the audit log: `local:<os user>`, or `hub:<user name>`. */
  actor: string
  local: boolean
  /** The only run that a dispatch token is for, together with the runs of its tree. Null means any run. */
  runId: string | null
  /** Whom a run names that this call starts. */
  startedBy: StartedBy
  /**
   * Whether the call would be allowed now, for calls that last. When the hub does not answer, the previous decision
   * stands.
   */
  stillAllowed(): Promise<boolean>
}

/** A caller as the guard sees it: one from another machine has its credential. */
type Admitted = Caller & { credential: Credential | null }

export interface AccessOptions {
  localToken: string
  /** `CADRE_LOCAL_AUTH=strict`: every call needs the local token. */
  strict: boolean
  credentials: Credentials
}

/** Reads `CADRE_LOCAL_AUTH`, which is `strict` or empty. */
export function strictFrom(value: string | undefined): boolean {
  if (!value || value === 'open') return false
  if (value === 'strict') return true
  throw new CadreError('invalid_request', `CADRE_LOCAL_AUTH: expected strict or nothing, got ${value}`)
}

export type AccessOf = (rule: DaemonAccess) => Access<Caller>

export function createAccess({ localToken, strict, credentials }: AccessOptions): AccessOf {
  const local: Omit<Admitted, 'startedBy'> = {
    name: localName(),
    actor: localName(),
    local: true,
    runId: null,
    credential: null,
    stillAllowed: async () => true,
  }

  const localBy = ({ headers }: Request): Admitted => {
    return { ...local, startedBy: { kind: 'person', name: userName(), via: viaOf(headers) } }
  }

  return rule => ({
    rule: inWords(rule),
    async admit({ request, bearer, peer }: Incoming) {
      const address = peer()
      const here = address !== null && isLoopbackAddress(address)
      if (bearer !== null) {
        if (here && sameSecret(bearer, localToken)) return localBy(request)
        return remote(await credentials.check(bearer), viaOf(request.headers), async () => {
          const credential = await credentials.again(bearer)
          if (credential) judge(credential, rule)
        })
      }
      if (!here) throw new CadreError('unauthorized', NO_CREDENTIAL)
      refuseProxied(request)
      refuseForeign(request)
      if (strict || rule.local === 'token') {
        throw new CadreError('unauthorized', 'this call needs the local token: the content of <home>/token, as Bearer')
      }
      return localBy(request)
    },
    permit({ credential }: Admitted) {
      if (!credential) return
      judge(credential, rule)
      credential.spend?.()
    },
  })

  function remote(credential: Credential, via: Via, again: () => Promise<void>): Admitted {
    if (!credentials.connected()) {
      throw new CadreError('unavailable', 'this daemon is not connected to its hub: calls from elsewhere wait for that')
    }
    const stillAllowed = () =>
      again().then(
        () => true,
        () => false,
      )
    return {
      name: credential.name,
      actor: hubActor(credential.name),
      local: false,
      runId: credential.runId,
      startedBy:
        credential.token === null
          ? { kind: 'person', name: credential.name, via }
          : { kind: 'token', name: credential.token, owner: credential.name, via },
      credential,
      stillAllowed,
    }
  }

  function judge({ actions, runId }: Credential, rule: DaemonAccess): void {
    if (rule.remote === null)
      throw new CadreError('forbidden', 'this call is only accepted on the daemon’s own machine')
    if (!actions.includes(rule.remote)) {
      throw new CadreError('forbidden', `this call needs ${rule.remote}; the credential allows ${list(actions)}`)
    }
    if (runId !== null && !rule.ofRun) throw new CadreError('forbidden', `the credential is for run ${runId} only`)
  }
}

function inWords({ local, remote }: DaemonAccess): string {
  return `${local === 'open' ? 'local' : 'local token'}; ${remote === null ? 'never remote' : `remote ${remote}`}`
}

const list = (actions: readonly string[]): string => actions.join(', ') || 'nothing here'

/** Names below `localhost` do not count, because some browsers ask the network for them. */
export function isThisMachine(hostname: string): boolean {
  return hostname === 'localhost' || isLoopbackAddress(hostname)
}

const PROXY_HEADERS = ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip']

/** Refuses calls through a proxy on this machine, because they look local but may come from people elsewhere. */
function refuseProxied({ headers }: Request): void {
  const name = PROXY_HEADERS.find(each => headers.has(each))
  if (name === undefined) return
  throw new CadreError('forbidden', `a call that came through a proxy (${name}) needs a token, on this machine too`)
}

/** Refuses what a browser sends on behalf of a web page of another origin. */
function refuseForeign({ headers }: Request): void {
  const host = parsed(`http://${headers.get('host') ?? ''}`)
  if (!host || !isThisMachine(host.hostname)) {
    const name = headers.get('host') ?? 'none'
    throw new CadreError('forbidden', `Host ${name} is not this machine: call 127.0.0.1 or localhost, or bring a token`)
  }
  const origin = headers.get('origin')
  const from = origin === null ? host : parsed(origin)
  const sameOrigin = from?.protocol === 'http:' && isThisMachine(from.hostname) && from.port === host.port
  // Browsers send no Origin with plain GETs. This header says how the page relates to the target.
  const site = headers.get('sec-fetch-site')
  if (sameOrigin && (site === null || site === 'same-origin' || site === 'none')) return
  throw new CadreError('forbidden', `pages of ${origin ?? 'another site'} may not call this daemon without its token`)
}

function parsed(url: string): URL | null {
  return URL.parse(url)
}
