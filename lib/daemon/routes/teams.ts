// teams/validate and teams/plan: read a team with everything that it uses and report every problem. They start nothing.

import { Elysia } from 'elysia'
import type { JsonObject } from '../../json.ts'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { PlanTeam, ValidateTeam } from '../../wire/calls/daemon-calls.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'
import { namesOf, notesOf, planRun } from '../runs/plan.ts'
import { loadTeam, missingSettings, secretUsers } from '../runs/start-run.ts'
import { Name } from './bodies.ts'

const Validate = closed({
  team: Type.Optional(Name),
  path: Type.Optional(Type.String({ minLength: 1, maxLength: 4_096 })),
})

const Plan = closed({ ...Validate.properties, inputs: Type.Optional(Type.Record(Type.String(), Type.Unknown())) })

const HERE = { local: 'open', remote: null } as const

export const teams = (daemon: Daemon, kit: DaemonKit) =>
  new Elysia({ name: 'teams', prefix: '/v1/teams' })
    .use(kit)
    .post(
      '/validate',
      async ({ body }) => {
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
          notes: notesOf(daemon, bundle),
        }
      },
      { access: HERE, body: Validate, data: ValidateTeam.data, detail: { summary: 'Check a team' } },
    )
    .post(
      '/plan',
      ({ body }) => {
        const { inputs, ...which } = body
        return planRun(daemon, { ...which, ...(inputs && { inputs: inputs as JsonObject }) })
      },
      { access: HERE, body: Plan, data: PlanTeam.data, detail: { summary: 'What a run would do' } },
    )
