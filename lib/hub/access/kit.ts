// The plugin of the hub's routes: it adds options that say who may make a call, those of `HubAccess` (lib/wire/access.ts).

import { Elysia } from 'elysia'
import { admission } from '../../http/admission.ts'
import { httpKit } from '../../http/kit.ts'
import type { UserRule } from '../../wire/access.ts'
import type { Hub } from '../core/hub.ts'
import { createAccesses } from './accesses.ts'

export function hubKit(hub: Hub) {
  const accesses = createAccesses(hub)
  return new Elysia({ name: 'hub' }).use(httpKit()).macro({
    stranger: (_: true) => admission(accesses.stranger()),
    user: (rule: UserRule) => admission(accesses.user(rule)),
    realm: (rule: true | { refusal: 'forbidden' }) =>
      admission(accesses.realm(rule === true ? undefined : rule.refusal)),
    either: (rule: UserRule) => admission(accesses.either(rule)),
    operator: (_: true) => admission(accesses.operator()),
    optional: (_: true) => admission(accesses.optional({})),
  })
}
