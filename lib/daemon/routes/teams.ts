// teams/validate, teams/plan: read a team with all that it reaches and tell every problem; start nothing.

import type { JsonObject } from '../../json.ts'
import { closed } from '../../schema.ts'
import { Type } from '../../type.ts'
import { namesOf, planRun } from '../plan.ts'
import type { Routing } from '../routes.ts'
import { loadTeam, missingSettings, secretUsers } from '../start.ts'
import { Name } from './bodies.ts'

const Validate = closed({
  team: Type.Optional(Name),
  path: Type.Optional(Type.String({ minLength: 1, maxLength: 4_096 })),
})

export function teamRoutes({ api, daemon, guard }: Routing): void {
  const access = guard({ local: 'open', remote: null })
  api.post('/v1/teams/validate', { access, body: Validate, summary: 'Check a team' }, async ({ body }) => {
    const bundle = await loadTeam(daemon, body)
    const { name, version, inputs, phases } = bundle.team(bundle.root)
    const users = secretUsers(bundle)
    return {
      valid: true,
      name,
      version,
      inputs,
      phases: phases.map(phase => phase.name),
      teams: Object.keys(bundle.json().teams).map(key => bundle.team(key).name),
      missing_settings: missingSettings(daemon, bundle),
      secrets: namesOf(users),
      missing_secrets: daemon.settings.missingSecrets(users),
    }
  })

  const Plan = closed({ ...Validate.properties, inputs: Type.Optional(Type.Record(Type.String(), Type.Unknown())) })
  api.post('/v1/teams/plan', { access, body: Plan, summary: 'What a run would do' }, ({ body }) => {
    const { inputs, ...which } = body
    return planRun(daemon, { ...which, ...(inputs && { inputs: inputs as JsonObject }) })
  })
}
