// agents/list: the catalogue, format version 1.0.0.

import { Elysia } from 'elysia'
import { closed } from '../../schema.ts'
import type { Daemon } from '../daemon.ts'
import type { DaemonKit } from '../kit.ts'

export const agents = (daemon: Daemon, kit: DaemonKit) =>
  new Elysia({ name: 'agents', prefix: '/v1/agents' }).use(kit).post(
    '/list',
    async () => {
      await daemon.renewAgents()
      return (await daemon.catalogue.load()).list()
    },
    {
      access: { local: 'open', remote: null },
      body: closed({}),
      detail: { summary: 'The agents that are installed' },
    },
  )
