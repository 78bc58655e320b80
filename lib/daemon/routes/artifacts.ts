// artifacts/*: the files that phases wrote. They are sent as downloads, so that no browser renders or runs them.

import { downloadHeaders } from '../../http/download.ts'
import { resource } from '../../http/resource.ts'
import { runPhases } from '../../run/engine.ts'
import { streamOf } from '../../stream.ts'
import { GetArtifact, ListArtifacts } from '../../wire/calls/artifacts.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import { readArtifact } from '../runs/artifact-file.ts'
import type { Daemon } from '../runs/daemon.ts'
import { target } from './runs.ts'

export const artifacts = (daemon: Daemon, kit: DaemonKit) =>
  resource('artifacts', kit, [
    answer(ListArtifacts, ({ body: { run_id, phase: only }, caller }) => {
      const { engine } = daemon
      const { phases } = runPhases(engine.store, target(daemon, caller, run_id), id => engine.bundle(id))
      const wanted = phases.filter(({ name }) => only === undefined || name === only)
      const artifacts = wanted.flatMap(({ name: phase, files }) => files.map(file => ({ phase, ...file })))
      return { artifacts, total: artifacts.length }
    }),
    answer(GetArtifact, async ({ query, caller }) => {
      const runId = target(daemon, caller, query.run_id)
      const unwritten = daemon.engine.unwrittenFile(runId, query.path)
      const { name, bytes, chunks } = await readArtifact(daemon.engine.stateDir(runId), runId, query.path, unwritten)
      return new Response(streamOf(chunks), { headers: { ...downloadHeaders(name), 'content-length': `${bytes}` } })
    }),
  ])
