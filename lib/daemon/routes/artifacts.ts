// artifacts/*: the files that phases wrote. They are sent as downloads, so that no browser renders or runs them.

import { Elysia } from 'elysia'
import { downloadHeaders } from '../../http/download.ts'
import { runPhases } from '../../run/engine.ts'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { streamOf } from '../../stream.ts'
import { ListArtifacts } from '../../wire/calls/daemon-calls.ts'
import type { DaemonKit } from '../access/kit.ts'
import { contentOf, openArtifact } from '../runs/artifact-file.ts'
import type { Daemon } from '../runs/daemon.ts'
import { Name, RunId } from './bodies.ts'
import { target } from './runs.ts'

const READ = { local: 'open', remote: 'access', ofRun: true } as const

export const artifacts = (daemon: Daemon, kit: DaemonKit) =>
  new Elysia({ name: 'artifacts', prefix: '/v1/artifacts' })
    .use(kit)
    .post(
      '/list',
      ({ body: { run_id, phase: only }, caller }) => {
        const { engine } = daemon
        const { phases } = runPhases(engine.store, target(daemon, caller, run_id), id => engine.bundle(id))
        const wanted = phases.filter(({ name }) => only === undefined || name === only)
        const artifacts = wanted.flatMap(({ name: phase, files }) => files.map(file => ({ phase, ...file })))
        return { artifacts, total: artifacts.length }
      },
      {
        access: READ,
        body: closed({ run_id: RunId, phase: Type.Optional(Name) }),
        data: ListArtifacts.data,
        detail: { summary: 'Files that phases of a run wrote' },
      },
    )
    .get(
      '/get',
      async ({ query, caller }) => {
        const runId = target(daemon, caller, query.run_id)
        const artifact = await openArtifact(daemon.engine.stateDir(runId), runId, query.path)
        const headers = { ...downloadHeaders(artifact.name), 'content-length': `${artifact.bytes}` }
        return new Response(streamOf(contentOf(artifact)), { headers })
      },
      {
        access: READ,
        query: closed({ run_id: RunId, path: Type.String({ minLength: 1, maxLength: 2_000 }) }),
        detail: { summary: 'One file, as a download' },
      },
    )
