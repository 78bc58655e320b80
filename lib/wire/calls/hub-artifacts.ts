// The files of runs at a hub: daemons send them (offer, put, keep), and people get them.

import { closed, nullable, standard } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { READ } from '../access.ts'
import { atHub, call } from '../call.ts'
import { AnyText, Uuid } from '../parts.ts'
import { ProtocolVersion } from '../protocol.ts'
import { GetArtifact } from './artifacts.ts'

/** A file that a run of the daemon has recorded. */
const OFFERED = {
  daemon_id: Uuid,
  run_id: Uuid,
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$', 'x-expected': 'a SHA-256 in hexadecimal' }),
  bytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
}

/**
 * Asks how to send a file. With `stored` the hub has it already. Otherwise it is sent with PUT and exactly these headers
 * to `url`, or to `PutFile` of the hub when that is null.
 */
export const OfferFile = call('/v1/artifacts/offer', {
  summary: 'Ask how to send a file that a run has recorded',
  hub: { realm: true },
  body: standard(Type.Object({ ...OFFERED, protocol: ProtocolVersion })),
  data: Type.Object({
    stored: Type.Boolean(),
    upload: nullable(Type.Object({ url: nullable(AnyText), headers: Type.Record(Type.String(), AnyText) })),
  }),
})

/** Reports that a file was sent. The hub looks for it in its store. */
export const KeepFile = call('/v1/artifacts/keep', {
  summary: 'Report that a file was sent',
  hub: { realm: true },
  body: standard(Type.Object({ ...OFFERED, protocol: ProtocolVersion })),
  data: Type.Object({ stored: Type.Literal(true) }),
})

export const PutFile = call('/v1/artifacts/put', {
  summary: 'Send a file to the hub, as the body',
  hub: { realm: true },
  method: 'PUT',
  query: closed({
    ...OFFERED,
    bytes: Type.String({ pattern: '^(0|[1-9][0-9]{0,14})$', 'x-expected': 'a number of bytes' }),
  }),
  data: Type.Object({ sha256: Type.String() }),
})
export const GetHubFile = atHub(GetArtifact, {
  summary: 'Get one file of a run as a download, or a redirect to it',
  hub: { user: READ },
  media: 'application/octet-stream',
})
