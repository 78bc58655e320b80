// POST /v1/hooks/<token>: what other programs send to hooks of realms. Their signature is checked in place of a credential.

import { Elysia } from 'elysia'
import { CadreError } from '../../error.ts'
import { type Access, admission } from '../../http/admission.ts'
import { httpKit } from '../../http/kit.ts'
import { HOOKS_PATH } from '../../wire/calls/triggers.ts'
import { addressOf, hostOf } from '../access/forwarded.ts'
import { networkOf } from '../access/sign-in-limit.ts'
import type { Hub } from '../core/hub.ts'
import { hookDoor } from '../triggers/hook-door.ts'

export function hooks(hub: Hub) {
  const door = hookDoor(hub)
  const sender: Access<string> = {
    rule: 'the signature of a sender',
    unread: true,
    admit(incoming) {
      const host = hostOf(hub, incoming.request.headers) ?? ''
      const name = URL.parse(`http://${host}`)?.hostname ?? ''
      if (hub.hookHosts.length === 0 || hub.hookHosts.includes(name)) return networkOf(addressOf(hub, incoming))
      throw new CadreError('forbidden', `Host ${name || 'none'} is not one of CADRE_HOOK_HOSTS`)
    },
  }
  return new Elysia({ name: 'hooks' })
    .use(httpKit())
    .macro({ sender: (_: true) => admission(sender) })
    .post(
      `${HOOKS_PATH}/*`,
      ({ request, caller }) => door.answer(new URL(request.url).pathname.slice(HOOKS_PATH.length + 1), request, caller),
      { sender: true, detail: { summary: 'Send a delivery to a hook', hide: true } },
    )
}
