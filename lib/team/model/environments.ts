// In which environments of settings.yml a team runs, as its team.yml says.

import { didYouMean, listed } from '../../text/spelling.ts'
import type { Team } from './compiled-team.ts'

/** Why a team does not run in an environment, or without one; null when it does. */
export function whyNotIn(
  { name, environments }: Pick<Team, 'name' | 'environments'>,
  environment: string | null,
): string | null {
  if (!environments) return null
  const { allow } = environments
  if (environment === null)
    return `${name} runs only in an environment, ${listed([...allow])}: say which, as with --env ${allow[0]}`
  if (allow.includes(environment)) return null
  return `${name} does not run in the environment ${environment}: it allows ${listed([...allow])}${didYouMean(environment, allow)}`
}
