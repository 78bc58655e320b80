// daemon/*: the process itself, and its link to the hub.

import { CadreError, messageOf } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import { DrainDaemon, GetHubLink } from '../../wire/calls/process.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import { waitingIn } from '../link/outbox/outbox.ts'
import type { Daemon } from '../runs/daemon.ts'

export function ownProcess(daemon: Daemon, kit: DaemonKit) {
  return resource('daemon', kit, [
    answer(DrainDaemon, async ({ body, caller }) => {
      if (!daemon.drain) {
        throw new CadreError('invalid_state', 'this process ends with its last run, and is no daemon that could drain')
      }
      if (!daemon.engine.isDraining) {
        const entry = { actor: caller.actor, action: 'daemon/drain', target: null }
        // A full disk must not keep a daemon from ending.
        await daemon.engine
          .commit(() => daemon.audit.write(entry))
          .catch(error => daemon.log.warn('a drain could not be recorded', { error: messageOf(error) }))
      }
      const { left, waitsFor } = daemon.drain(body.most_ms ?? null)
      return { pid: process.pid, left_ms: left, under_way: waitsFor }
    }),
    answer(GetHubLink, async () => {
      const { remote } = daemon
      const { url = null, paused = false, troubles = [] } = remote?.standing() ?? {}
      const waiting = await waitingIn(daemon.engine.store)
      return { url, connected: remote?.connected() ?? null, paused, troubles, waiting }
    }),
  ])
}
