// Signing in and out: a session is a user token of kind `session`.

import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call } from '../call.ts'
import { Text, Time } from '../parts.ts'
import { User } from '../records/hub-records.ts'

const Credentials = closed({
  username: Text(100, 1),
  password: Type.String({ minLength: 1, maxLength: 1_000 }),
})
const Session = Type.Object({
  token: Type.String(),
  expires_at: Time,
  user: Type.Pick(User, ['id', 'username', 'site_admin']),
})

export const CreateSession = call('/v1/session/create', {
  summary: 'Sign in',
  hub: { stranger: true },
  body: Credentials,
  data: Session,
})
export const DeleteSession = call('/v1/session/delete', {
  summary: 'Sign out: revokes the session that calls',
  hub: { user: {} },
  body: closed({}),
  data: Type.Object({ id: Type.Integer() }),
})
