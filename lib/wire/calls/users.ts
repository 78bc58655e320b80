// Accounts. Site admins create them; there is no public sign-up.

import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call } from '../call.ts'
import { listBody, listOf } from '../page.ts'
import { Id, Password, Username } from '../parts.ts'
import { OWNS, User, withMore } from '../records/hub-records.ts'

const ByUser = closed({ user_id: Type.Optional(Id), username: Type.Optional(Username) })

export const CreateUser = call('/v1/users/create', {
  summary: 'Create an account',
  hub: { user: { grant: { users: 'write' }, site: true } },
  body: closed({ username: Username, password: Password, site_admin: Type.Optional(Type.Boolean()) }),
  data: User,
})
export const ListUsers = call('/v1/users/list', {
  summary: 'List accounts',
  hub: { user: { grant: { users: 'read' }, site: true } },
  body: listBody({}),
  data: listOf('users', User),
})
export const GetUser = call('/v1/users/get', {
  summary: 'Get an account: your own, one of an org that you share, or any for a site admin',
  hub: { user: { grant: { users: 'read' } } },
  body: ByUser,
  data: Type.Union([User, Type.Pick(User, ['id', 'username', 'created_at'])]),
})
export const UpdateUser = call('/v1/users/update', {
  summary: 'Rename an account, make it a site admin or not, set its password, which ends its sessions, end its tokens',
  hub: { user: { grant: { users: 'write' }, site: true } },
  body: closed({
    user_id: Id,
    username: Type.Optional(Username),
    site_admin: Type.Optional(Type.Boolean()),
    password: Type.Optional(Password),
    revoke_tokens: Type.Optional(Type.Boolean()),
  }),
  data: User,
})
export const SuspendUser = call('/v1/users/suspend', {
  summary: 'Suspend an account, whose webhooks, tokens and invitations then rest, or end its suspension',
  hub: { user: { grant: { users: 'admin' }, site: true } },
  body: closed({ user_id: Id, suspended: Type.Optional(Type.Boolean()) }),
  data: withMore(User, OWNS),
})
export const DeleteUser = call('/v1/users/delete', {
  summary: 'Delete an account with its tokens, sessions and memberships; its name is never given again',
  hub: { user: { grant: { users: 'admin' }, site: true } },
  body: closed({ user_id: Id }),
  data: Type.Object({ id: Type.Integer() }),
})
export const ChangePassword = call('/v1/users/change_password', {
  summary: 'Change your own password; other sessions end, and other tokens too if requested',
  hub: { user: {} },
  body: closed({
    password: Type.String({ minLength: 1, maxLength: 1_000 }),
    new_password: Password,
    revoke_tokens: Type.Optional(Type.Boolean()),
  }),
  data: User,
})
