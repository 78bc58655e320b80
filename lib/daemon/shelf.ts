// What commands ask about teams: through the daemon that serves the home, or in this process. Nothing is started here, so
// the lock of the home is not needed.

import { discover } from '../agent/catalogue.ts'
import type { Detail } from '../error.ts'
import type { Log } from '../log.ts'
import { openSettings } from '../settings/settings.ts'
import type { Field } from '../team/team.ts'
import { Bundles } from './bundles.ts'
import { connect } from './client.ts'
import { makeHome } from './home.ts'
import { Packages } from './packages.ts'
import { namesOf, type Plan, planRun } from './plan.ts'
import { loadTeam, type RunRequest, type Stock, secretUsers } from './start.ts'

/** A team that is valid: what it takes, the named secrets that it uses, and those that it cannot have. */
interface Valid {
  inputs: readonly Field[]
  secrets: readonly string[]
  missing_secrets: readonly Detail[]
}

export interface Shelf {
  /** Throws `invalid_request` with every problem of the team. */
  validate(which: Pick<RunRequest, 'team' | 'path'>): Promise<Valid>
  plan(request: RunRequest): Promise<Plan>
}

export async function openShelf(home: string, log: Log): Promise<Shelf> {
  const client = connect(home)
  if (client) {
    return {
      validate: which => client.call('/v1/teams/validate', which),
      plan: request => client.call('/v1/teams/plan', request),
    }
  }
  makeHome(home)
  const stock: Stock = {
    catalogue: await discover({ home, extra: process.env.CADRE_AGENTS }),
    settings: await openSettings(home, { log }),
    packages: new Packages(home, log),
    bundles: new Bundles(),
  }
  return {
    async validate(which) {
      const bundle = await loadTeam(stock, which)
      const users = secretUsers(bundle)
      return {
        inputs: bundle.team(bundle.root).inputs,
        secrets: namesOf(users),
        missing_secrets: stock.settings.missingSecrets(users),
      }
    },
    plan: request => planRun(stock, request),
  }
}
