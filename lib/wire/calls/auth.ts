// Tokens, and whose token is calling.

import type { Static } from 'typebox'
import { closed, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call } from '../call.ts'
import { Grant, Permissions } from '../grants.ts'
import { listBody, listOf } from '../page.ts'
import { Id, Time, Title, Uuid } from '../parts.ts'
import { AccessList } from '../protocol.ts'
import { RealmRole, Token, withMore } from '../records/hub-records.ts'

const Generate = closed({
  type: Type.Enum(['user', 'realm']),
  name: Title,
  permissions: Type.Optional(Permissions),
  realm_ids: Type.Optional(Type.Array(Uuid, { minItems: 1, maxItems: 100, uniqueItems: true })),
  expires_in_days: Type.Optional(Type.Integer({ minimum: 1, maximum: 3_650 })),
})
const Minted = withMore(Type.Pick(Token, ['id', 'name', 'type', 'realm_ids', 'expires_at']), {
  token: Type.String(),
  permissions: Grant,
})
/**
 * Whom a token belongs to. `realm_role` is its owner's live role in the given realm from memberships alone, so a site
 * admin who is not a member has none. It is null when the token does not reach the realm.
 */
const Identity = withMore(Type.Pick(Token, ['type', 'kind', 'realm_ids']), {
  user: nullable(Type.Object({ id: Type.Integer(), username: Type.String() })),
  permissions: Grant,
  expires_at: nullable(Time),
  realm_role: Type.Optional(nullable(RealmRole)),
  name: Type.Optional(Type.String({ description: 'The name of the token.' })),
})
export type Identity = Static<typeof Identity>

export const GenerateToken = call('/v1/auth/generate_token', {
  summary: 'Mint a token',
  hub: { user: { grant: { tokens: 'write' }, realm: 'member' } },
  body: Generate,
  data: Minted,
  status: 201,
})
export const ListTokens = call('/v1/auth/get_tokens', {
  summary: 'List your own tokens, or those of a realm',
  hub: { user: { grant: { tokens: 'read' }, realm: 'admin' } },
  body: listBody({ realm_id: Type.Optional(Uuid) }),
  data: listOf('tokens', Token),
})
export const RevokeToken = call('/v1/auth/revoke_token', {
  summary: 'Revoke a token',
  hub: { user: { realm: 'admin' } },
  body: closed({ id: Id }),
  data: Token,
})
export const RotateToken = call('/v1/auth/rotate_token', {
  summary: 'Give a token a new secret',
  hub: { user: { grant: { tokens: 'write' } } },
  body: closed({ id: Id }),
  data: withMore(Token, { token: Type.String() }),
})
export const Whoami = call('/v1/auth/whoami', {
  summary: 'Who the calling token belongs to and what it grants',
  hub: { either: { realm: 'member' } },
  body: closed({ realm_id: Type.Optional(nullable(Uuid)) }),
  data: Identity,
})
export const GetAccessList = call('/v1/auth/acl', {
  summary: 'Who may call a daemon over the network',
  hub: { realm: { refusal: 'forbidden' } },
  body: closed({ daemon_id: Uuid, realm_id: Type.Optional(Uuid) }),
  data: AccessList,
})
