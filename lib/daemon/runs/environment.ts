// In which environment of settings.yml a run works: the one that its request names, or the default of its team. Each team
// of the run that lists environments must allow it, because one that is for staging must not touch production from below.

import type { Detail } from '../../error.ts'
import type { Scope, Settings } from '../../settings/settings.ts'
import { type Team, whyNotIn } from '../../team/team.ts'

export interface Chosen {
  environment: string | null
  /** What runs have there; null when there is a problem. */
  scope: Scope | null
  /** Who may approve runs there before they begin; null when nobody is asked. */
  review: string[] | null
  problems: Detail[]
}

/** The first of `teams` is the root. */
export function environmentFor(settings: Settings, teams: readonly Team[], asked: string | null = null): Chosen {
  const environment = asked ?? teams[0]?.environments?.default ?? null
  const refusals = teams.map(team => whyNotIn(team, environment))
  const unknown = environment === null ? null : settings.whyNoEnvironment(environment)
  const messages = [...new Set([...refusals, unknown])].filter(message => message !== null)
  const problems = messages.map(message => ({ path: '/environment', message }))
  if (problems.length > 0) return { environment, scope: null, review: null, problems }
  return { environment, scope: settings.in(environment), review: settings.reviewersIn(environment), problems }
}
