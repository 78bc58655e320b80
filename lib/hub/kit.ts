// The kit of the hub's routes: who may call, as options of a route.

import { Elysia } from 'elysia'
import { admission } from '../http/admission.ts'
import { httpKit } from '../http/kit.ts'
import { createCallers, type UserRule } from './callers.ts'
import type { Hub } from './hub.ts'

export function hubKit(hub: Hub) {
  const callers = createCallers(hub)
  return new Elysia({ name: 'hub' }).use(httpKit()).macro({
    /** Anybody, without a credential. */
    stranger: (_: true) => admission(callers.stranger()),
    /** Who has a user token; with this grant and this role. */
    user: (rule: true | UserRule) => admission(callers.user(rule === true ? {} : rule)),
    /** Who has a realm token; `refusal` is what a user token answers instead of 401. */
    realm: (rule: true | { refusal: 'forbidden' }) =>
      admission(callers.realm(rule === true ? undefined : rule.refusal)),
    /** Who has a realm token, or a user token with this grant and this role. */
    either: (rule: UserRule) => admission(callers.either(rule)),
    /** Who has a user token, or no credential. */
    optional: (_: true) => admission(callers.optional({})),
  })
}
