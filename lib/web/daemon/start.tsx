// Starts a run: the form is made of the inputs of its team, and below it stands what the run would do.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Static } from 'typebox'
import type { JsonObject } from '../../json.ts'
import { GetRun, StartRun } from '../../wire/calls/runs.ts'
import type { Which } from '../../wire/calls/teams.ts'
import { PlanTeam, ValidateTeam } from '../../wire/calls/teams.ts'
import type { Field as InputField } from '../../wire/records/forms.ts'
import type { Plan } from '../../wire/records/plans.ts'
import { useAction, type Work } from '../kit/actions.tsx'
import { call, commandOf } from '../kit/api.ts'
import { CopyCommand } from '../kit/copyable.tsx'
import { boundTo, Field, handleSubmit } from '../kit/fields.tsx'
import { Fields, inputOptions, optionOf, type Typed, typedOf, valuesOf } from '../kit/forms.tsx'
import { Failure, useLoaded } from '../kit/parts.tsx'
import { go, route, to } from '../kit/route.ts'
import { knownTeams } from '../run/runs.tsx'
import { EditLink, PlanSummary, planAddress, teamRef } from './plan.tsx'

/** Where the teams lie that were started from this page, by name, to choose from. */
const KEY = 'cadre-team-paths'

function pathsByTeam(): Record<string, string> {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '{}')
  } catch {
    return {}
  }
}

type Request = Static<typeof PlanTeam.body>

interface OpenedTeam {
  which: Which
  name: string
  fields: readonly InputField[]
}

export function Start() {
  const like = route.value.query.get('like')
  const text = useSignal(route.value.query.get('team') ?? '')
  const opened = useSignal<OpenedTeam | null>(null)
  const typed = useSignal<Typed>({})
  const about = useSignal({ name: '', workspace: '', environment: '' })
  const { busy, error, run } = useAction()
  const teams = useLoaded('teams', knownTeams)
  const suggestions = [
    ...Object.values(pathsByTeam()),
    ...(teams.data ?? []).filter(team => !team.startsWith('@local/')),
  ]

  async function open(values = {}): Promise<void> {
    opened.value = null
    const given = text.value.trim()
    const which = teamRef(given)
    const { inputs, ...found } = await call(ValidateTeam, which)
    opened.value = { which, name: 'name' in found ? String(found.name) : given, fields: inputs }
    typed.value = typedOf(inputs, values)
  }
  useEffect(() => {
    void run(async () => {
      if (like === null) return text.value === '' ? undefined : open()
      const run = await call(GetRun, { run_id: like })
      const { folder = null, run_name, workspace, environment } = run
      text.value = folder ?? run.team
      about.value = {
        name: run_name ?? '',
        workspace: workspace === folder ? '' : (workspace ?? ''),
        environment: environment ?? '',
      }
      if (text.value !== '') await open(run.inputs)
    })
  }, [like])

  const start: Work = async send => {
    const { which, name: team, fields } = opened.value!
    const inputs = valuesOf(fields, typed.value)
    const { name, workspace, environment } = about.value
    const { run_id } = await send(StartRun, {
      ...{ ...which, inputs },
      ...(name.trim() && { run_name: name.trim() }),
      ...(workspace.trim() && { workspace: workspace.trim() }),
      ...(environment.trim() && { environment: environment.trim() }),
    })
    if (which.path !== undefined) localStorage.setItem(KEY, JSON.stringify({ ...pathsByTeam(), [team]: which.path }))
    go(to('runs', run_id))
  }

  return (
    <main>
      <header class="top">
        <h1>Start a run</h1>
      </header>
      <form class="row" onSubmit={handleSubmit(() => run(() => open()))}>
        <Field
          label="Team"
          required
          list="teams"
          placeholder="@scope/name, or the path of a folder with a team.yml"
          value={text.value}
          set={typed => {
            text.value = typed
            opened.value = null
          }}
        >
          <datalist id="teams">
            {[...new Set(suggestions)].map(each => (
              <option key={each} value={each} />
            ))}
          </datalist>
        </Field>
        <button type="submit" class={opened.value ? 'plain' : ''}>
          Open
        </button>
      </form>
      <Failure of={error} />
      {opened.value && (
        <form class="card" onSubmit={handleSubmit(() => run(start))}>
          <h2>{opened.value.name}</h2>
          {opened.value.fields.length === 0 && <p class="quiet">The team asks for no inputs.</p>}
          <div class="grid">
            <Fields of={opened.value.fields} typed={typed} prefix="input" />
            <Field label="Name of the run" maxLength={200} {...boundTo(about, 'name')} />
            <Field
              label="Workspace"
              placeholder="a name or a folder; empty: the folder of the team"
              {...boundTo(about, 'workspace')}
            />
            <Field
              label="Environment"
              placeholder="staging; empty: the plain settings"
              {...boundTo(about, 'environment')}
            />
          </div>
          <div class="row">
            <button type="submit" disabled={busy}>
              Start
            </button>
            <CopyCommand
              text={commandOf(
                ...['run', text.value.trim(), ...optionOf('name', about.value.name)],
                ...optionOf('workspace', about.value.workspace),
                ...optionOf('env', about.value.environment),
                ...inputOptions(opened.value.fields, typed.value),
              )}
            />
            <EditLink team={opened.value.which.path ?? ''} />
          </div>
        </form>
      )}
      {opened.value && (
        <OwnPlan
          key={opened.value.name}
          team={text.value.trim()}
          request={{
            ...opened.value.which,
            inputs: valuesSoFar(opened.value.fields, typed.value),
            ...(about.value.environment.trim() && { environment: about.value.environment.trim() }),
          }}
          shown={valuesSoFar(
            opened.value.fields.filter(({ secret }) => !secret),
            typed.value,
          )}
        />
      )}
    </main>
  )
}

/** How long nobody types before the plan is made again. */
const TYPED_MS = 250

/** The plan for what is typed. The one before stays until it is there. `shown` are the inputs that may stand in an address. */
function OwnPlan({ team, request, shown }: { team: string; request: Request; shown: JsonObject }) {
  const plan = useSignal<Plan | null>(null)
  const error = useSignal<unknown>(null)
  useEffect(() => {
    let isAsked = true
    const ask = async () => {
      try {
        const found = await call(PlanTeam, request)
        if (!isAsked) return
        plan.value = found
        error.value = null
      } catch (thrown) {
        if (isAsked) error.value = thrown
      }
    }
    const timer = setTimeout(ask, plan.peek() ? TYPED_MS : 0)
    return () => {
      isAsked = false
      clearTimeout(timer)
    }
  }, [JSON.stringify(request)])
  return (
    <>
      <Failure of={error.value} />
      {plan.value && <PlanSummary plan={plan.value} address={planAddress(team, shown)} />}
    </>
  )
}

/** The values of the fields that can be read so far: somebody is typing the others. */
function valuesSoFar(fields: readonly InputField[], typed: Typed): JsonObject {
  return Object.assign(
    {},
    ...fields.map(field => {
      try {
        return valuesOf([field], typed)
      } catch {
        return {}
      }
    }),
  )
}
