// Hooks of a realm: what the hub keeps of them beside their rows.

import { CadreError } from '../../error.ts'
import { familyOf } from '../../firing/family.ts'
import { sentValues } from '../../firing/hook-firing.ts'
import { mustFitScheme } from '../../firing/hook-secrets.ts'
import { createRedactor } from '../../secrets/redact.ts'
import type { Hook } from '../../triggers/hook/fields.ts'
import { HOOKS_PATH } from '../../wire/calls/triggers.ts'
import { firingOf } from './firing-table.ts'
import { changeSecrets, insertHook, openedSecrets, secretRows, sentWith, tokenOf, waited } from './hook-table.ts'
import type { RealmKind } from './realm-kind.ts'

export const hooks: RealmKind<Hook> = {
  async added({ hub, tx, trigger, now }, { secret: add }) {
    await insertHook(hub.store, tx, trigger.id)
    await changeSecrets(hub, tx, trigger.id, { add }, now)
  },

  async updated({ hub, tx, trigger: { id, spec }, now }, { add_secret: add, expire_secret: expire }) {
    if (add !== undefined || expire !== undefined) await changeSecrets(hub, tx, id, { add, expire }, now)
    const fitting = (await secretRows(hub.store, tx, id)).filter(({ expires_at }) => expires_at === null)
    mustFitScheme(spec.own, openedSecrets(hub.sealer, fitting))
  },

  async settled({ hub, tx }, { id, state }) {
    if (state !== 'waiting') await waited(hub.store, tx, id)
  },

  async values({ hub, tx, trigger }, firing) {
    const occasion = familyOf(firing)
    // One that is fired again has what the first one has.
    const first = await firingOf(hub.store, tx, trigger.id, occasion)
    const sent = first && (await sentWith(hub, tx, first.id))
    if (!sent) throw new CadreError('invalid_state', `the body of the delivery ${occasion} is not kept`)
    return sentValues(trigger.spec.own, firing, sent)
  },

  async mask({ sealer, store }, db, { id }) {
    const { json } = createRedactor(openedSecrets(sealer, await secretRows(store, db, id)))
    return json
  },

  async shown({ store, publicUrl }, db, { id }) {
    const secrets = await secretRows(store, db, id)
    return {
      url: `${publicUrl ?? ''}${HOOKS_PATH}/${await tokenOf(store, db, id)}`,
      secrets: secrets.map(({ id, created_at, expires_at }) => ({ id, created_at, expires_at })),
    }
  },

  recalled(by, at) {
    if (by.kind !== 'hook') return null
    const delivery = { id: by.delivery, event: null, at: new Date(at).toISOString() }
    return { occasion: by.delivery, at, late_ms: 0, variables: { headers: {}, delivery } }
  },
}
