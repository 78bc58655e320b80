// The plan of a run: what is missing before it can start, what it would write where and with whose credential, and its phases
// at every depth.

import { useSignal } from '@preact/signals'
import { isObject, type JsonObject } from '../../json.ts'
import { PlanTeam } from '../../wire/calls/teams.ts'
import type { Plan, PlannedPhase, PlannedTeam } from '../../wire/records/plans.ts'
import { call, token } from '../kit/api.ts'
import { Failure, Json, ScrollTable, useLoaded } from '../kit/parts.tsx'
import { route, to, withQuery } from '../kit/route.ts'
import { TeamTriggers } from '../triggers/team-triggers.tsx'
import { Graph } from './drawing.tsx'

export const teamRef = (typed: string) => (typed.startsWith('@') ? { team: typed } : { path: typed })

/** The address of the plan for these inputs. */
export const planAddress = (team: string, inputs: JsonObject): string =>
  withQuery(to('plan'), { team, inputs: Object.keys(inputs).length > 0 ? JSON.stringify(inputs) : '' })

/** The page `#/plan?team=…&inputs=…`. */
export function PlanPage() {
  const { query } = route.value
  const team = query.get('team') ?? ''
  const { data, error } = useLoaded(query.toString(), () =>
    call(PlanTeam, { ...teamRef(team), inputs: inputsOf(query.get('inputs')) }),
  )
  return (
    <main>
      <p class="crumbs">
        <a href={withQuery(to('start'), { team })}>Start a run</a>
      </p>
      <header class="top">
        <div>
          <h1 class="wrap">Plan of {data?.team.name ?? team}</h1>
          <p class="facts quiet small">
            {data && <span>{data.team.version}</span>}
            <code class="wrap">{team}</code>
          </p>
        </div>
        <a class="button" href={withQuery(to('start'), { team })}>
          Start it
        </a>
      </header>
      <Failure of={error} />
      {data && (
        <>
          <Missing of={data} />
          <h2>What it would write</h2>
          <Writes of={data} />
          <Requirements of={data} />
          <TeamTriggers team={team} mayAdd={token.value !== null} />
          <h2>Phases</h2>
          <TeamPhases team={data.team} />
        </>
      )}
    </main>
  )
}

function inputsOf(text: string | null): JsonObject {
  const value = text === null ? {} : JSON.parse(text)
  return isObject(value) ? (value as JsonObject) : {}
}

/** The plan in short, below the form that starts a run. */
export function PlanSummary({ plan, address }: { plan: Plan; address: string }) {
  return (
    <section class="card" aria-label="Plan">
      <h2>What it would write</h2>
      <Missing of={plan} />
      <Writes of={plan} />
      <p>
        <a href={address}>All phases of the plan</a>
      </p>
    </section>
  )
}

function Missing({ of: { missing, warnings } }: { of: Plan }) {
  return (
    <>
      {warnings.map(text => (
        <p key={text} class="notice awaiting_input">
          {text}
        </p>
      ))}
      {missing.length > 0 && <MissingList missing={missing} />}
    </>
  )
}

function MissingList({ missing }: Pick<Plan, 'missing'>) {
  return (
    <div class="notice failed">
      <p>It cannot start yet:</p>
      <ul>
        {missing.map(({ path, message }) => (
          <li key={path + message}>
            <code>{path}</code> {message}
          </li>
        ))}
      </ul>
    </div>
  )
}

const EFFECTS: Record<string, string> = {
  once: 'once, and never twice',
  idempotent: 'the same when repeated',
  'by entry': 'depends on the entry',
}

export function Writes({ of: { writes } }: { of: Pick<Plan, 'writes'> }) {
  if (writes.length === 0) {
    return <p class="quiet">It writes nothing to other systems, except what its commands do.</p>
  }
  return (
    <ScrollTable head={['Phase', 'Agent', 'Where to', 'Credential', 'Written']}>
      {writes.map((write, index) => (
        <tr key={index}>
          <td>{write.phase.join(' › ')}</td>
          <td>{write.action ? `${write.agent}.${write.action}` : write.agent}</td>
          <td class="wrap">{write.to}</td>
          <td>{write.credentials.join(', ') || 'none'}</td>
          <td>{EFFECTS[write.effect] ?? write.effect}</td>
        </tr>
      ))}
    </ScrollTable>
  )
}

/** The secrets and the concurrency key of the run, and its requirements of a daemon. */
function Requirements({ of: { environment, review = [], secrets, concurrency, requires, inputs } }: { of: Plan }) {
  const requirements = Object.entries({ ...requires.labels, ...requires.agents }).map(
    ([name, value]) => `${name} ${value}`,
  )
  const key = concurrency && `${concurrency.key ?? 'known when it starts'}, held by at most ${concurrency.limit}`
  const facts = [
    ['Environment', environment ?? ''],
    ['Approved before it begins', review.length > 0 ? `by ${review.join(', ')}` : ''],
    ['Secrets', secrets.join(', ')],
    ['Concurrency key', key ?? ''],
    ['Needs of a daemon', requirements.join(', ')],
  ].filter(([, text]) => text !== '')
  return (
    <>
      {facts.length > 0 && (
        <dl class="fields">
          {facts.map(([name, text]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd class="wrap">{text}</dd>
            </div>
          ))}
        </dl>
      )}
      {Object.keys(inputs).length > 0 && (
        <details class="part">
          <summary>Inputs</summary>
          <Json of={inputs} />
        </details>
      )}
    </>
  )
}

export function aboutOf({ type, agent, action, below }: PlannedPhase): string {
  if (agent) return action ? `${agent}.${action}` : agent
  return below ? `${type} of ${below.name}` : type
}

/** The phases of a team, as a graph and as a list. An entry of the list opens to its inputs and to the team below. */
function TeamPhases({ team: { phases, recursive, unheld, listeners = [] } }: { team: PlannedTeam }) {
  if (recursive) return <p class="quiet">The team calls itself here.</p>
  return (
    <>
      {unheld !== undefined && <p class="quiet">Its key {unheld} is held only when it is started by itself.</p>}
      <Graph of={phases.map(phase => ({ name: phase.name, after: phase.depends_on, about: aboutOf(phase) }))} />
      <ul class="files">
        {phases.map(phase => (
          <Phase key={phase.name} of={phase} />
        ))}
      </ul>
      {listeners.map(({ name, agent, events }) => (
        <p key={name} class="quiet">
          {name} ({agent}) sends notifications about {events.join(', ')}
        </p>
      ))}
    </>
  )
}

function Phase({ of }: { of: PlannedPhase }) {
  const open = useSignal(false)
  const { name, below } = of
  return (
    <li>
      <button
        type="button"
        class="file"
        aria-expanded={open}
        onClick={() => {
          open.value = !open.value
        }}
      >
        <span class="name">{name}</span>
        <span class="quiet small">{aboutOf(of)}</span>
      </button>
      {open.value && (
        <div class="opened">
          <PhaseInputs of={of} />
          {below && <TeamPhases team={below} />}
        </div>
      )}
    </li>
  )
}

/** The inputs of a phase, as the file of the team has them. */
export function PhaseInputs({ of: { when, items, inputs, entries } }: { of: Partial<PlannedPhase> }) {
  const given = {
    ...(when !== undefined && { when }),
    ...(items !== undefined && { items }),
    ...(inputs !== undefined && { inputs }),
  }
  return (
    <>
      {Object.keys(given).length > 0 && <Json of={given} />}
      {entries?.map((entry, index) => (
        <Json key={index} of={entry} />
      ))}
    </>
  )
}
