// settings/*: requires the local token, is never available from other machines, and always masks secrets.

import { Elysia } from 'elysia'
import type { Json } from '../../json.ts'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { GetSetting, ListSettings, SetSetting } from '../../wire/calls/daemon-calls.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'

const Key = Type.String({ minLength: 1, maxLength: 200 })

const OWNER = { local: 'token', remote: null } as const

export function settings(daemon: Daemon, kit: DaemonKit) {
  const { settings } = daemon
  return new Elysia({ name: 'settings', prefix: '/v1/settings' })
    .use(kit)
    .post('/list', async () => ({ settings: settings.list(await daemon.catalogue.load()) }), {
      access: OWNER,
      body: closed({}),
      data: ListSettings.data,
      detail: { summary: 'All settings, secrets masked' },
    })
    .post('/get', async ({ body }) => settings.get(body.key, await daemon.catalogue.load()), {
      access: OWNER,
      body: closed({ key: Key }),
      data: GetSetting.data,
      detail: { summary: 'One setting' },
    })
    .post(
      '/set',
      async ({ body, caller }) => {
        const { key } = body
        const value = body.value as Json
        // The hub is asked about the credential itself, not about the reference that names it.
        if (key.startsWith('hub.')) await daemon.checkSetting(key, await settings.lookUp(value))
        await daemon.renewAgents()
        const catalogue = await daemon.catalogue.load()
        // The file is no part of a transaction. A kill in between leaves an entry for a change that was not made.
        const entry = { actor: caller.actor, action: 'settings/set', target: value === null ? `${key}, removed` : key }
        await settings.set(key, value, catalogue, () => daemon.engine.commit(() => daemon.audit.write(entry)))
        return value === null ? { key, value } : settings.get(key, catalogue)
      },
      {
        access: OWNER,
        body: closed({ key: Key, value: Type.Unknown() }),
        data: SetSetting.data,
        detail: { summary: 'Set a setting; null removes it' },
      },
    )
}
