// What commands ask about teams: through the process that holds the home, or in this process. Nothing is started, so
// the lock of the home is not needed.

import { findAgents } from '../../../agent/catalogue.ts'
import type { Log } from '../../../log/log.ts'
import { openSettings } from '../../../settings/settings.ts'
import { noteText } from '../../../text/unseen.ts'
import { PlanTeam, ValidateTeam } from '../../../wire/calls/teams.ts'
import { Bundles } from '../../packages/bundle-cache.ts'
import { Packages } from '../../packages/packages.ts'
import { sandboxesOf } from '../../packages/sandboxes.ts'
import { ownFiles } from '../../runs/own-files.ts'
import { namesOf, notesOf, planRun } from '../../runs/plan.ts'
import { environmentOf, loadTeam, missingSecrets, type Stock, secretUsers } from '../../runs/start-run.ts'
import { type Callee, withHome } from './home-client.ts'
import { answer, answering } from './local-answers.ts'

/**
 * Asks with `work`, which may be called more than once, because a process that holds the home may release it in
 * between.
 */
export function askAboutTeams<T>(home: string, log: Log, work: (callee: Callee) => Promise<T>): Promise<T> {
  return withHome(home, work, async () => work(await fromThisProcess(home, log)))
}

/** What this process knows of a home, without the process that may hold it. */
export async function stockOfHome(home: string, log: Log): Promise<Stock> {
  const settings = await openSettings(home, { log })
  const { env } = process
  const packages = new Packages(home, { trust: () => settings.packageTrust(), log })
  packages.findSource = async () => (await import('../../link/package-source.ts')).packagesOfEnrolment(settings, env)
  return {
    catalogue: findAgents({ home, extra: env.CADRE_AGENTS }),
    settings,
    packages,
    bundles: new Bundles(),
    sandboxes: sandboxesOf(home, settings),
  }
}

async function fromThisProcess(home: string, log: Log): Promise<Callee> {
  const stock = await stockOfHome(home, log)
  return answering(
    answer(ValidateTeam, async which => {
      const bundle = await loadTeam(stock, which)
      const { name, inputs } = bundle.team(bundle.root)
      return {
        name,
        inputs: [...inputs],
        secrets: namesOf(secretUsers(bundle)),
        missing_secrets: missingSecrets(bundle, environmentOf(stock, bundle)),
        notes: notesOf(stock, bundle).map(noteText),
        own_files: ownFiles(stock, bundle),
      }
    }),
    answer(PlanTeam, async request => {
      // A plan hides the secrets of all settings, and which values are secrets is said by the agents.
      await stock.catalogue.load(stock.settings.agents('everywhere'))
      return planRun(stock, request)
    }),
  )
}
