// teams/*: read a team with everything that it uses and report every problem, say what its runs did, and change its files. They start nothing.

import { resource } from '../../http/resource.ts'
import { teamHistory } from '../../run/engine.ts'
import { noteText } from '../../text/unseen.ts'
import { GetTeamFiles, GetTeamHistory, PlanTeam, SaveTeam, ValidateTeam } from '../../wire/calls/teams.ts'
import { refuseInPlace } from '../../wire/in-place.ts'
import { page } from '../../wire/page.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'
import { shown } from '../runs/interrupted.ts'
import { ownFiles } from '../runs/own-files.ts'
import { namesOf, notesOf, planRun } from '../runs/plan.ts'
import { environmentOf, loadTeam, missingSecrets, missingSettings, secretUsers } from '../runs/start-run.ts'
import { mistakesIn } from '../teams/mistakes.ts'
import { readTeamFiles, saveTeamFiles } from '../teams/team-files.ts'
import { openTeamFolder } from '../teams/team-folders.ts'

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
    answer(GetTeamHistory, async ({ body: { team, upto, ...asked } }) => {
      refuseInPlace(team)
      const { engine, reads, openRuns } = daemon
      const filter = { team, ...page(asked), ...(upto !== undefined && { upto }) }
      const { runs, ...counted } = await teamHistory(engine.store, filter, id => engine.bundle(id), reads)
      return { runs: runs.map(run => (openRuns.isInterrupted(run.root_run_id) ? shown(run) : run)), ...counted }
    }),
    answer(PlanTeam, ({ body }) => planRun(daemon, body)),
    answer(GetTeamFiles, async ({ body }) => {
      using folder = openTeamFolder(daemon, body.path)
      return await readTeamFiles(folder)
    }),
    answer(SaveTeam, async ({ body: { path, files, base_sha256 }, caller }) => {
      using folder = openTeamFolder(daemon, path)
      const target = `${folder.path}: ${Object.keys(files).join(', ')}`
      // The files are no part of a transaction. A kill in between leaves an entry for a change that was not made.
      const noted = () => daemon.audit.during(caller.actor, 'teams/save', () => target, String)
      const sha256 = await saveTeamFiles(folder, files, base_sha256, noted)
      return { path: folder.path, sha256, problems: await mistakesIn(daemon, folder.path, files) }
    }),
  ])
