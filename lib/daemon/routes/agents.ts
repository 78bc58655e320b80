// agents/list: the catalogue. agents/doctor: whether agents could do their work. It asks other systems with the credentials
// of the settings, so that it needs the local token, as settings do.

import { resource } from '../../http/resource.ts'
import { ExamineAgents, ListAgents } from '../../wire/calls/agents.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'

export const agents = (daemon: Daemon, kit: DaemonKit) =>
  resource('agents', kit, [
    answer(ExamineAgents, async ({ body }) => {
      await daemon.renewAgents()
      await daemon.catalogue.load()
      const { examine } = await import('../runs/agent-checks.ts')
      return { findings: await examine(daemon, body) }
    }),
    answer(ListAgents, async () => {
      await daemon.renewAgents()
      return (await daemon.catalogue.load()).list()
    }),
  ])
