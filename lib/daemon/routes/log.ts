// runs/log: what a run and the runs below it have written so far, as lines of JSON, each with lines of one run. A reader
// that also follows `runs/stream` misses nothing: lines have numbers.

import { Elysia } from 'elysia'
import { CadreError } from '../../error.ts'
import { lineStream } from '../../http/stream.ts'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'
import { treeLog } from '../runs/tree-log.ts'
import { RunId } from './bodies.ts'
import { target } from './runs.ts'

export const log = (daemon: Daemon, kit: DaemonKit) =>
  new Elysia({ name: 'log', prefix: '/v1/runs' }).use(kit).get(
    '/log',
    ({ query, caller, request, server }) => {
      const runId = target(daemon, caller, query.run_id)
      server?.timeout(request, 0)
      const readable = async () => {
        if (await caller.stillAllowed()) return
        throw new CadreError('unauthorized', 'the credential has ended')
      }
      return lineStream(treeLog(daemon.engine, runId, query.below !== 'no', readable))
    },
    {
      access: { local: 'open', remote: 'access', ofRun: true },
      query: closed({ run_id: RunId, below: Type.Optional(Type.Enum(['yes', 'no'])) }),
      media: 'application/x-ndjson',
      detail: { summary: 'All log lines of a run and of the runs below it, in the order of time' },
    },
  )
