// What a home keeps of a hook beside its row: its address, its secrets, and what came with its deliveries.

import { CadreError } from '../../error.ts'
import { familyOf } from '../../firing/family.ts'
import { sentValues } from '../../firing/hook-firing.ts'
import { mustFitScheme } from '../../firing/hook-secrets.ts'
import type { Hook } from '../../triggers/hook/fields.ts'
import type { AtHome } from './at-home.ts'

export const hook: AtHome<Hook> = {
  added({ daemon, tables }, trigger, { secret }) {
    tables.hooks.insert(trigger.id)
    daemon.hookSecrets.change(trigger.id, { add: secret }, trigger.created_at)
  },

  updated({ daemon, tables }, { id, spec }, { add_secret: add, expire_secret: expire }) {
    const { hookSecrets } = daemon
    if (add !== undefined || expire !== undefined) hookSecrets.change(id, { add, expire }, tables.now())
    mustFitScheme(spec.own, hookSecrets.values(id) ?? [])
  },

  settled({ tables }, firing) {
    if (firing.state !== 'waiting') tables.hooks.waited(firing.id)
  },

  /** What expressions see beside what the firing has. */
  recalled({ daemon, tables }, { spec }, firing) {
    const occasion = familyOf(firing)
    // One that is fired again has what the first one has.
    const first = tables.firings.of(firing.trigger_id, occasion)
    const sent = first && tables.hooks.sent(daemon.seal, first.id)
    if (!sent) throw new CadreError('invalid_state', `the body of the delivery ${occasion} is not kept`)
    return sentValues(spec.own, firing, sent)
  },
}
