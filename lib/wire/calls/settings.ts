// The settings of a home. Only its owner reads and changes them, and secrets are masked.

import type { Static } from 'typebox'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { OWNER } from '../access.ts'
import { call } from '../call.ts'
import { AnyJson, AnyText, Name } from '../parts.ts'

const Setting = Type.Object({ key: AnyText, value: AnyJson })
export type Setting = Static<typeof Setting>

export const ListSettings = call('/v1/settings/list', {
  summary: 'All settings, secrets masked',
  daemon: OWNER,
  body: closed({}),
  data: Type.Object({ settings: Type.Array(Setting) }),
})
export const GetSetting = call('/v1/settings/get', {
  summary: 'One setting',
  daemon: OWNER,
  body: closed({ key: Name }),
  data: Setting,
})
export const SetSetting = call('/v1/settings/set', {
  summary: 'Set a setting; null removes it',
  daemon: OWNER,
  body: closed({ key: Name, value: AnyJson }),
  data: Setting,
})
