// The fields of a trigger that only hooks have, as they stand in the body of `triggers/add`, beside those of all triggers.

import type { Static } from 'typebox'
import { DURATION_PATTERN } from '../../duration.ts'
import { Type } from '../../schema/type.ts'
import { HOOK_SCHEMES } from './schemes.ts'

const MIB = 1024 * 1024

/** What GitHub sends at most. */
export const MOST_BYTES = 25 * MIB
export const DEFAULT_BYTES = MIB
export const TOLERANCE_MS = { least: 30_000, default: 300_000, most: 15 * 60_000 }
export const DEFAULT_DAYS = { keep: 30, body: 7 }

/** A name of a header: https://www.rfc-editor.org/rfc/rfc9110#name-tokens. */
const header = (description: string) =>
  Type.Optional(
    Type.String({
      maxLength: 100,
      pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
      'x-expected': 'the name of a header, such as X-Signature',
      description,
    }),
  )

export const HookFields = {
  scheme: Type.Enum([...HOOK_SCHEMES], { description: 'How the sender shows that it knows the secret.' }),
  header: header('hmac: the header of the signature. bearer: that of the secret; `Authorization: Bearer` if absent.'),
  algorithm: Type.Optional(Type.Enum(['sha256', 'sha512'], { description: 'hmac: the hash; sha256 if absent.' })),
  encoding: Type.Optional(
    Type.Enum(['hex', 'base64'], { description: 'hmac: how the header writes the digest; hex if absent.' }),
  ),
  prefix: Type.Optional(
    Type.String({
      maxLength: 100,
      pattern: '^[\\x21-\\x7e][\\x20-\\x7e]*$',
      'x-expected': 'what stands before the digest, such as sha256=',
      description: 'hmac: what stands before the digest in the header.',
    }),
  ),
  payload: Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'hmac: what is signed, with `{timestamp}`, `{id}` and `{body}`; `{body}` if absent.',
    }),
  ),
  key: Type.Optional(
    Type.Enum(['text', 'hex', 'base64'], { description: 'hmac: how the secret writes the key; text if absent.' }),
  ),
  timestamp_header: header('hmac: the header of the time that is signed.'),
  unit: Type.Optional(Type.Enum(['s', 'ms'], { description: 'hmac: the unit of that time; s if absent.' })),
  id_header: header('hmac and bearer: the header of the id of a delivery.'),
  tolerance: Type.Optional(
    Type.String({
      pattern: DURATION_PATTERN,
      description: 'How far the signed time may be from now, in both directions: 30s to 15m; 5m if absent.',
    }),
  ),
  dedup: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 10_000,
      description:
        'What makes two deliveries the same one, instead of the id that the sender gives: `none`, `body` (the same bytes within 10 minutes), or a template of `body`, `headers` and `query`.',
    }),
  ),
  max_bytes: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MOST_BYTES, description: 'The largest body; 1 MiB if absent.' }),
  ),
  keep_days: Type.Optional(
    Type.Integer({
      minimum: 3,
      maximum: 3_650,
      description: 'For how many days a delivery is recognised when it comes again; 30 if absent.',
    }),
  ),
  keep_body: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 365,
      description: 'For how many days the body is kept; 7 if absent. 0: never, so that nothing can be fired again.',
    }),
  ),
  reply: Type.Optional(
    Type.Enum(['json', 'empty'], {
      description: 'What the sender is answered; json if absent, and empty for slack, whose commands show it.',
    }),
  ),
}

/** The same in a body or a record that other kinds have as well. */
export const OptionalHookFields = { ...HookFields, scheme: Type.Optional(HookFields.scheme) }

/** The fields alone. */
export const Hook = Type.Object(HookFields, { additionalProperties: false })
export type Hook = Static<typeof Hook>
