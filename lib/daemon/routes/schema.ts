// GET /schema/team.json: the schema of team.yml for editors, which cannot send a token, with the agents that are installed.
// Callers from elsewhere and pages of other sites are refused, because it shows which agents these are.

import { resource } from '../../http/resource.ts'
import { teamJsonSchema } from '../../team/team.ts'
import { GetTeamSchema } from '../../wire/calls/teams.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'

export const schema = (daemon: Daemon, kit: DaemonKit) =>
  resource('schema', kit, [
    answer(GetTeamSchema, async () => {
      await daemon.renewAgents()
      const catalogue = await daemon.catalogue.load()
      return Response.json(teamJsonSchema(catalogue), { headers: { 'content-type': GetTeamSchema.media } })
    }),
  ])
