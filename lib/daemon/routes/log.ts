// runs/log: what a run and the runs below it have written so far, as lines of JSON, each with lines of one run. A reader
// that also follows `runs/stream` misses nothing: lines have numbers.

import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import { lineStream } from '../../http/stream.ts'
import { ReadLog } from '../../wire/calls/runs.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'
import { treeLog } from '../runs/tree-log.ts'
import { target } from './runs.ts'

export const log = (daemon: Daemon, kit: DaemonKit) =>
  resource('log', kit, [
    answer(ReadLog, ({ query, caller, request, server }) => {
      const runId = target(daemon, caller, query.run_id)
      server?.timeout(request, 0)
      const readable = async () => {
        if (await caller.stillAllowed()) return
        throw new CadreError('unauthorized', 'the credential has ended')
      }
      return lineStream(treeLog(daemon.engine, runId, query.below !== 'no', readable))
    }),
  ])
