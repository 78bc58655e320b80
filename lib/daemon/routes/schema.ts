// GET /schema/team.json: the schema of team.yml for editors, which cannot send a token, with the agents that are installed.
// Callers from elsewhere and pages of other sites are refused, because it tells which agents these are.

import { Elysia } from 'elysia'
import { closed } from '../../schema/schema.ts'
import { teamJsonSchema } from '../../team/team.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'

const MEDIA = 'application/schema+json'

export const schema = (daemon: Daemon, kit: DaemonKit) =>
  new Elysia({ name: 'schema', prefix: '/schema' }).use(kit).get(
    '/team.json',
    async () => {
      await daemon.renewAgents()
      const catalogue = await daemon.catalogue.load()
      return Response.json(teamJsonSchema(catalogue), { headers: { 'content-type': MEDIA } })
    },
    {
      access: { local: 'open', remote: null },
      query: closed({}),
      media: MEDIA,
      detail: { summary: 'The JSON Schema of team.yml' },
    },
  )
