// POST /v1/hooks/<token>: what other programs send to hooks of this home. Their signature is checked in place of a
// credential. They have to be on this machine, as a tunnel to it is: a hub takes what comes from elsewhere.

import { Elysia } from 'elysia'
import { isLoopbackAddress } from '../../agent/net/address.ts'
import { CadreError } from '../../error.ts'
import { type Access, admission } from '../../http/admission.ts'
import { httpKit } from '../../http/kit.ts'
import { HOOKS_PATH } from '../../wire/calls/triggers.ts'
import { isThisMachine } from '../access/access.ts'
import type { Daemon } from '../runs/daemon.ts'
import { type DoorOptions, hookDoor } from '../triggers/hook-door.ts'

/** Browsers send one of these with each POST, and programs send none. */
const PAGES = ['origin', 'sec-fetch-site']

/** `hosts`: the names by which it may be called, besides those of this machine; null: this process does not serve. */
export function hooks(daemon: Daemon, hosts: readonly string[] | null, options: DoorOptions = {}) {
  const door = hookDoor(daemon, options)
  const sender: Access<string> = {
    rule: 'the signature of a sender on this machine',
    unread: true,
    admit({ request, peer }) {
      if (hosts === null) {
        throw new CadreError('unavailable', 'no daemon serves this home: send it again later', { retryAfter: 30 })
      }
      const address = peer()
      if (address === null || !isLoopbackAddress(address)) {
        throw new CadreError('forbidden', 'a hook of a home is reachable on its own machine only: add it on a hub')
      }
      if (PAGES.some(header => request.headers.has(header))) {
        throw new CadreError('forbidden', 'pages may not call hooks: the programs that send deliveries do')
      }
      const name = URL.parse(`http://${request.headers.get('host') ?? ''}`)?.hostname ?? ''
      if (isThisMachine(name) || hosts.includes(name)) return address
      throw new CadreError('forbidden', `Host ${name || 'none'} is not this machine, and not one of CADRE_HOOK_HOSTS`)
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
