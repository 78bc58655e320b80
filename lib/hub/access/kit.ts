// The plugin of the hub's routes: it adds the options with which a route declares who may call it.

import { Elysia } from 'elysia'
import { admission } from '../../http/admission.ts'
import { httpKit } from '../../http/kit.ts'
import type { UserRule } from '../../wire/access.ts'
import type { Hub } from '../core/hub.ts'
import { createAccesses } from './accesses.ts'

export function hubKit(hub: Hub) {
  const accesses = createAccesses(hub)
  return new Elysia({ name: 'hub' }).use(httpKit()).macro({
    /** Anybody, without a credential. */
    stranger: (_: true) => admission(accesses.stranger()),
    /** Callers with a user token that has this grant, and with this role. */
    user: (rule: true | UserRule) => admission(accesses.user(rule === true ? {} : rule)),
    /** Callers with a realm token. `refusal` is the code that a user token gets instead of 401. */
    realm: (rule: true | { refusal: 'forbidden' }) =>
      admission(accesses.realm(rule === true ? undefined : rule.refusal)),
    /** Callers with a realm token, or with a user token that has this grant and with this role. */
    either: (rule: UserRule) => admission(accesses.either(rule)),
    /** Those who operate the hub: site admins, and programs with `CADRE_METRICS_TOKEN`. */
    operator: (_: true) => admission(accesses.operator()),
    /** Callers with a user token or without a credential. */
    optional: (_: true) => admission(accesses.optional({})),
  })
}
