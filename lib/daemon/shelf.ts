// What commands ask about teams: through the daemon that serves the home, or in this process. Nothing is started here, so
// the lock of the home is not needed.

import { discover } from '../agent/catalogue.ts'
import type { Log } from '../log.ts'
import { openSettings } from '../settings/settings.ts'
import type { Field } from '../team/team.ts'
import { Bundles } from './bundles.ts'
import { connect } from './client.ts'
import { makeHome } from './home.ts'
import { Packages } from './packages.ts'
import { type Plan, planRun } from './plan.ts'
import { loadTeam, type RunRequest, type Stock } from './start.ts'

export interface Shelf {
  /** Throws `invalid_request` with every problem of the team. */
  validate(which: Pick<RunRequest, 'team' | 'path'>): Promise<{ inputs: readonly Field[] }>
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
      return { inputs: bundle.team(bundle.root).inputs }
    },
    plan: request => planRun(stock, request),
  }
}
