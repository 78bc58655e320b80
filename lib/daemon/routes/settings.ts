// settings/*: requires the local token, is never available from other machines, and always masks secrets.

import { resource } from '../../http/resource.ts'
import { GetSetting, ListSettings, SetSetting } from '../../wire/calls/settings.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'

export function settings(daemon: Daemon, kit: DaemonKit) {
  const { settings } = daemon
  return resource('settings', kit, [
    answer(ListSettings, async () => ({ settings: settings.list(await daemon.catalogue.load()) })),
    answer(GetSetting, async ({ body }) => settings.get(body.key, await daemon.catalogue.load())),
    answer(SetSetting, async ({ body: { key, value }, caller }) => {
      // The hub is asked about the credential itself, not about the reference that names it.
      if (key.startsWith('hub.')) await daemon.checkSetting(key, await settings.lookUp(value))
      await daemon.renewAgents()
      const catalogue = await daemon.catalogue.load()
      // The file is no part of a transaction. A kill in between leaves an entry for a change that was not made.
      const entry = { actor: caller.actor, action: 'settings/set', target: value === null ? `${key}, removed` : key }
      await settings.set(key, value, catalogue, () => daemon.engine.commit(() => daemon.audit.write(entry)))
      return value === null ? { key, value } : settings.get(key, catalogue)
    }),
  ])
}
