// What the hub's routes declare about who may call them. `admit` finds the token and its owner, and `permit` checks its
// grant.

import { CadreError } from '../../error.ts'
import type { Access, Incoming } from '../../http/admission.ts'
import { viaOf } from '../../http/via.ts'
import { sameSecret } from '../../secrets/secret-form.ts'
import type { UserRule } from '../../wire/access.ts'
import { allows } from '../../wire/grants.ts'
import { CALLER_HEADER } from '../../wire/protocol.ts'
import { isUuid } from '../core/bodies.ts'
import type { Hub } from '../core/hub.ts'
import { accessText, lacksGrant, RealmCaller, type Stranger, UserCaller, type Way } from './callers.ts'
import { knownDaemon } from './daemons.ts'
import { addressOf } from './forwarded.ts'
import { authenticator, type TokenFacts } from './live-token.ts'

/** The accesses that the hub's routes declare. */
export function createAccesses(hub: Hub) {
  const { store } = hub

  const authenticate = authenticator(hub)

  /** The caller that `of` makes of the token of a request: no promise when the token is known. */
  function admitted<Caller>(incoming: Incoming, of: (token: TokenFacts) => Caller): Caller | Promise<Caller> {
    const token = authenticate(incoming)
    return token instanceof Promise ? token.then(of) : of(token)
  }

  function asUser(incoming: Incoming, token: TokenFacts, rule: UserRule): UserCaller {
    if (token.type !== 'user')
      throw new CadreError('forbidden', 'this call does not accept a realm token; use a user token')
    const again = async () => {
      const caller = asUser(incoming, await authenticate(incoming), rule)
      permit(caller, rule)
      return caller
    }
    return new UserCaller(hub, token, rule, {
      address: () => addressOf(hub, incoming),
      via: viaOf(incoming.request.headers),
      again,
    })
  }

  /** Checks the grant of a token before anything is looked up. */
  function permit({ token }: UserCaller, rule: UserRule): void {
    for (const required of [rule.grant, rule.also]) {
      if (required && !allows(token.grant, required)) throw lacksGrant(required)
    }
    if (rule.site && !token.user.siteAdmin) throw new CadreError('forbidden', 'only a site admin may do this')
  }

  const asStranger = (incoming: Incoming): Stranger => ({
    kind: 'stranger',
    write: store.write,
    address: () => addressOf(hub, incoming),
  })

  function asRealm(incoming: Incoming, token: TokenFacts, named: Way<RealmCaller>['named']): RealmCaller {
    return new RealmCaller(hub, token, {
      address: () => addressOf(hub, incoming),
      again: async () => {
        const now = namedBy(incoming)
        return asRealm(incoming, await authenticate(incoming), now)
      },
      named,
    })
  }

  /** Looks for the daemon while the token is looked for. SQLite knows both without a wait. */
  function namedBy({ request }: Incoming): Way<RealmCaller>['named'] {
    if (store.dialect === 'sqlite') return null
    const id = request.headers.get(CALLER_HEADER)
    if (id === null || !isUuid(id)) return null
    const row = Promise.resolve(knownDaemon(hub, id))
    row.catch(() => {})
    return { id, row }
  }

  return {
    /** Routes that anybody may call, without a credential. */
    stranger(): Access<Stranger> {
      return { rule: 'none', admit: asStranger }
    },
    user(rule: UserRule): Access<UserCaller> {
      return {
        rule: describe(rule),
        admit: incoming => admitted(incoming, token => asUser(incoming, token, rule)),
        permit: caller => permit(caller, rule),
      }
    },
    /** Routes for realm tokens only. A user token is refused with the code `refusal`. */
    realm(refusal: 'unauthorized' | 'forbidden' = 'unauthorized'): Access<RealmCaller> {
      return {
        rule: 'realm token',
        admit(incoming) {
          const named = namedBy(incoming)
          return admitted(incoming, token => {
            if (token.type === 'realm') return asRealm(incoming, token, named)
            throw new CadreError(refusal, 'this call does not accept a user token; use a realm token (cadre_dt_…)')
          })
        },
      }
    },
    either(rule: UserRule): Access<UserCaller | RealmCaller> {
      return {
        rule: `${describe(rule)}, or realm token`,
        admit: incoming =>
          admitted<UserCaller | RealmCaller>(incoming, token =>
            token.type === 'realm' ? asRealm(incoming, token, null) : asUser(incoming, token, rule),
          ),
        permit: caller => caller.kind === 'user' && permit(caller, rule),
      }
    },
    /**
     * Routes about the hub as a whole: for whoever presents `CADRE_METRICS_TOKEN`, and for a site admin whose token
     * grants reading every realm.
     */
    operator(): Access<UserCaller | null> {
      const rule: UserRule = { grant: { realms: 'read' }, site: true }
      return {
        rule: `CADRE_METRICS_TOKEN, or ${describe(rule)}, all orgs`,
        async admit(incoming) {
          const { metricsToken } = hub
          if (metricsToken !== null && incoming.bearer !== null && sameSecret(incoming.bearer, metricsToken))
            return null
          return asUser(incoming, await authenticate(incoming), rule)
        },
        permit(caller) {
          if (caller === null) return
          permit(caller, rule)
          if (caller.token.grant.domains.orgs === '*') return
          throw new CadreError('forbidden', 'the token’s grant must reach all orgs (domains.orgs: "*")')
        },
      }
    },
    /** Routes that use the user token when the request has one, and do not require it. */
    optional(rule: UserRule): Access<UserCaller | Stranger> {
      return {
        rule: `none, or ${describe(rule)}`,
        admit: async incoming =>
          incoming.bearer === null ? asStranger(incoming) : asUser(incoming, await authenticate(incoming), rule),
        permit: caller => caller.kind === 'user' && permit(caller, rule),
      }
    },
  }
}

function describe({ grant, also, site, ...roles }: UserRule): string {
  const parts = Object.entries(roles).map(([kind, role]) => `${kind} role ${role}`)
  return [
    'user token',
    ...(grant ? [`grant ${accessText(grant)}`] : []),
    ...(also ? [`and ${accessText(also)}`] : []),
    ...parts,
    ...(site ? ['site admin'] : []),
  ].join(', ')
}
