// teams/validate and teams/plan: read a team with everything that it uses and report every problem. They start nothing.

import { resource } from '../../http/resource.ts'
import { noteText } from '../../text/unseen.ts'
import { PlanTeam, ValidateTeam } from '../../wire/calls/teams.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'
import { ownFiles } from '../runs/own-files.ts'
import { namesOf, notesOf, planRun } from '../runs/plan.ts'
import { environmentOf, loadTeam, missingSecrets, missingSettings, secretUsers } from '../runs/start-run.ts'

export const teams = (daemon: Daemon, kit: DaemonKit) =>
  resource('teams', kit, [
    answer(ValidateTeam, async ({ body }) => {
      const bundle = await loadTeam(daemon, body)
      const { name, version, inputs, phases } = bundle.team(bundle.root)
      const chosen = environmentOf(daemon, bundle)
      return {
        valid: true,
        name,
        version,
        inputs: [...inputs],
        phases: phases.map(phase => phase.name),
        teams: Object.keys(bundle.json().teams).map(key => bundle.team(key).name),
        missing_settings: missingSettings(daemon, bundle, chosen),
        secrets: namesOf(secretUsers(bundle)),
        missing_secrets: missingSecrets(bundle, chosen),
        notes: notesOf(daemon, bundle).map(noteText),
        own_files: ownFiles(daemon, bundle),
      }
    }),
    answer(PlanTeam, ({ body }) => planRun(daemon, body)),
  ])
