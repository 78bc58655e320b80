// What a proxy in front of the hub says of a request, which is believed only with `CADRE_TRUST_PROXY`.

import type { Incoming } from '../../http/admission.ts'
import type { Hub } from '../core/hub.ts'

type Trust = Pick<Hub, 'trustProxy'>

/** The last of a list: what the proxy itself has added, and not its caller. */
export const lastOf = (list: string | null): string | undefined => list?.split(',').at(-1)?.trim()

/** The address of the caller. */
export const addressOf = ({ trustProxy }: Trust, { request, peer }: Pick<Incoming, 'request' | 'peer'>): string =>
  (trustProxy && lastOf(request.headers.get('x-forwarded-for'))) || (peer() ?? 'unknown')

/** The host and port that the caller has asked for. */
export const hostOf = ({ trustProxy }: Trust, headers: Headers): string | null =>
  (trustProxy && lastOf(headers.get('x-forwarded-host'))) || headers.get('host')
