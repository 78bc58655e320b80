// daemon/*: the process itself.

import { CadreError, messageOf } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import { DrainDaemon } from '../../wire/calls/process.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
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
  ])
}
