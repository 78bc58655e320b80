// What a home keeps of a hook beside its row: its address, its secrets, and what came with its deliveries.

import { CadreError } from '../../error.ts'
import { hookSpec } from '../../firing/hook-kind.ts'
import type { Firing } from '../../firing/trigger.ts'
import { parseBody } from '../../triggers/hook/body.ts'
import type { Hook } from '../../triggers/hook/fields.ts'
import { checkSecret } from '../../triggers/hook/secrets.ts'
import type { AtHome } from './at-home.ts'

export const hook: AtHome<Hook> = {
  added({ daemon, tables }, trigger, { secret }) {
    tables.hooks.insert(trigger.id)
    daemon.hookSecrets.change(trigger.id, { add: secret }, trigger.created_at)
  },

  updated({ daemon, tables }, { id, spec }, { add_secret: add, expire_secret: expire }) {
    const { hookSecrets } = daemon
    if (add !== undefined || expire !== undefined) hookSecrets.change(id, { add, expire }, tables.now())
    // Another scheme may need another form of them.
    const checked = hookSpec(spec.own)
    const [wrong] = (hookSecrets.values(id) ?? []).flatMap(value => checkSecret(checked, value, '/scheme').problems)
    if (!wrong) return
    const message = `the secret of the hook does not fit ${checked.scheme}: it ${wrong.message}`
    throw new CadreError('invalid_request', message, { details: [{ path: '/scheme', message }] })
  },

  settled({ tables }, firing) {
    if (firing.state !== 'waiting') tables.hooks.waited(firing.id)
  },

  /** What expressions see beside what the firing has. */
  recalled({ daemon, tables }, { spec }, firing) {
    const [occasion] = firing.occasion.split('#')
    // One that is fired again has what the first one has.
    const first = tables.firings.of(firing.trigger_id, occasion!)
    const sent = first && tables.hooks.sent(daemon.seal, first.id)
    if (!sent) throw new CadreError('invalid_state', `the body of the delivery ${occasion} is not kept`)
    const type = contentTypeOf(firing)
    const body = parseBody(hookSpec(spec.own), type, sent.body)
    if (!body.ok) throw new CadreError('invalid_state', body.detail)
    return { body: body.value, query: sent.query }
  },
}

function contentTypeOf({ variables }: Firing): string | null {
  const { headers } = variables as { headers?: Record<string, string> }
  return headers?.['content-type'] ?? null
}
