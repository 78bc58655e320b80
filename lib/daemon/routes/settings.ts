// settings/*: always with the local token, never from elsewhere, secrets always masked.

import type { Json } from '../../json.ts'
import { closed } from '../../schema.ts'
import { Type } from '../../type.ts'
import type { Routing } from '../routes.ts'

const Key = Type.String({ minLength: 1, maxLength: 200 })

export function settingRoutes({ api, daemon, guard }: Routing): void {
  const access = guard({ local: 'token', remote: null })
  const { settings, catalogue } = daemon
  api.post('/v1/settings/list', { access, body: closed({}), summary: 'All settings, secrets masked' }, () => ({
    settings: settings.list(catalogue),
  }))
  api.post('/v1/settings/get', { access, body: closed({ key: Key }), summary: 'One setting' }, ({ body }) =>
    settings.get(body.key, catalogue),
  )
  const NewValue = closed({ key: Key, value: Type.Unknown() })
  api.post(
    '/v1/settings/set',
    { access, body: NewValue, summary: 'Set a setting; null removes it' },
    async ({ body }) => {
      const { key } = body
      const value = body.value as Json
      // What the hub is asked about is the credential, not where it is kept.
      if (key.startsWith('hub.')) await daemon.checkSetting(key, await settings.lookUp(value))
      await settings.set(key, value, catalogue)
      return value === null ? { key, value } : settings.get(key, catalogue)
    },
  )
}
