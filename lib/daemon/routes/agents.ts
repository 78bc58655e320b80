// agents/list: the catalogue, format version 1.0.0. agents/doctor: whether agents could do their work. It asks other
// systems with the credentials of the settings, so that it needs the local token, as settings do.

import { Elysia } from 'elysia'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { ExamineAgents, ListAgents } from '../../wire/calls/daemon-calls.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'
import { Name } from './bodies.ts'

export const agents = (daemon: Daemon, kit: DaemonKit) =>
  new Elysia({ name: 'agents', prefix: '/v1/agents' })
    .use(kit)
    .post(
      '/doctor',
      async ({ body }) => {
        await daemon.renewAgents()
        await daemon.catalogue.load()
        const { examine } = await import('../doctor.ts')
        return { findings: await examine(daemon, body.agent) }
      },
      {
        access: { local: 'token', remote: null },
        body: closed({ agent: Type.Optional(Name) }),
        data: ExamineAgents.data,
        detail: { summary: 'Whether agents could do their work' },
      },
    )
    .post(
      '/list',
      async () => {
        await daemon.renewAgents()
        return (await daemon.catalogue.load()).list()
      },
      {
        access: { local: 'open', remote: null },
        body: closed({}),
        data: ListAgents.data,
        detail: { summary: 'The agents that are installed' },
      },
    )
