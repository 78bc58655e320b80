// The plan of a run: its phases as a picture in which those that write outside are marked, what it needs and lacks, what it
// would write where and with whose credential, and its phases at every depth.

import { useSignal } from '@preact/signals'
import { isObject, type JsonObject } from '../../json.ts'
import { PlanTeam } from '../../wire/calls/teams.ts'
import type { Plan, PlannedPhase, PlannedTeam } from '../../wire/records/plans.ts'
import { call, token } from '../kit/api.ts'
import { Failure, Json, useLoaded } from '../kit/parts.tsx'
import { route, to, withQuery } from '../kit/route.ts'
import { type Drawable, Graph } from '../run/drawing.tsx'
import { PhaseInputs, Writes } from '../run/plan.tsx'
import { TeamTriggers } from '../triggers/team-triggers.tsx'

export const teamRef = (typed: string) => (typed.startsWith('@') ? { team: typed } : { path: typed })

/** The address of the plan for these inputs. */
export const planAddress = (team: string, inputs: JsonObject): string =>
  withQuery(to('plan'), { team, inputs: Object.keys(inputs).length > 0 ? JSON.stringify(inputs) : '' })

/** Leads to the text of a team that has a folder on this machine. */
export function EditLink({ team }: { team: string }) {
  if (team === '' || team.startsWith('@')) return null
  return <a href={withQuery(to('edit'), { path: team.replace(/\/team\.yml$/, '') })}>Edit the team</a>
}

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
        <div class="row">
          <EditLink team={team} />
          <a class="button" href={withQuery(to('start'), { team })}>
            Start it
          </a>
        </div>
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
          <TeamPhases team={data.team} writes={data.writes} />
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
      <h2>Plan</h2>
      <Picture phases={plan.team.phases} writes={plan.writes} above={[]} />
      <Missing of={plan} />
      <Needs of={plan} />
      <p>
        <a href={address}>All phases of the plan</a>
      </p>
    </section>
  )
}

/** What stands beside the text while somebody writes a team. */
export function PlanBeside({ plan }: { plan: Plan }) {
  return (
    <section class="card" aria-label="Plan">
      <h2>Plan</h2>
      <Picture phases={plan.team.phases} writes={plan.writes} above={[]} />
      <Needs of={plan} />
    </section>
  )
}

function Needs({ of }: { of: Plan }) {
  return (
    <>
      <Requirements of={of} />
      <h3>What it would write</h3>
      <Writes of={of} />
    </>
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
    <div class="notice awaiting_input">
      <p>It cannot start yet:</p>
      <ul>
        {missing.map(({ path, message }) => (
          <li key={path + message}>
            {!message.includes(path) && <code>{path}</code>} {message}
          </li>
        ))}
      </ul>
    </div>
  )
}

/** What the run needs: agents with what they lack, credentials, where its commands run, and its requirements of a daemon. */
function Requirements({ of: plan }: { of: Plan }) {
  const { environment, review = [], secrets, concurrency, requires, inputs, missing, team, writes } = plan
  const requirements = Object.entries({ ...requires.labels, ...requires.agents }).map(
    ([name, value]) => `${name} ${value}`,
  )
  const key = concurrency && `${concurrency.key ?? 'known when it starts'}, held by at most ${concurrency.limit}`
  const phases = [...everyPhase(team)]
  const agents = [
    ...new Set([...phases.flatMap(({ agent }) => agent ?? []), ...writes.map(({ agent }) => agent)]),
  ].sort()
  const lackOf = (agent: string) =>
    missing.flatMap(({ path }) => (path.startsWith(`agents.${agent}.`) ? path.slice(`agents.${agent}.`.length) : []))
  const credentials = [...new Set(writes.flatMap(each => each.credentials))].sort()
  const facts = [
    ['Agents', agents.map(name => withLacks(name, lackOf(name))).join('; ')],
    ['Credentials', credentials.join(', ')],
    ['Secrets', secrets.join(', ')],
    ['Commands', [...new Set(phases.flatMap(commandsOf))].join('; ')],
    ['Environment', environment ?? ''],
    ['Approved before it begins', review.length > 0 ? `by ${review.join(', ')}` : ''],
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

const withLacks = (agent: string, lacks: readonly string[]): string =>
  lacks.length === 0 ? agent : `${agent} (lacks ${lacks.join(', ')})`

function commandsOf({ sandbox, network = false }: PlannedPhase): string[] {
  if (sandbox === undefined) return []
  return [`${sandbox === 'none' ? 'run without a sandbox' : `run in ${sandbox}`}${network ? ', with the network' : ''}`]
}

function* everyPhase({ phases }: PlannedTeam): Generator<PlannedPhase> {
  for (const phase of phases) {
    yield phase
    if (phase.below) yield* everyPhase(phase.below)
  }
}

function aboutOf({ type, agent, action, below }: PlannedPhase): string {
  if (agent) return action ? `${agent}.${action}` : agent
  return below ? `${type} of ${below.name}` : type
}

interface InPlan {
  writes: Plan['writes']
  /** The phases above, from the top team down. */
  above: readonly string[]
}

/** The phases as a graph, in which those that write outside are marked, at any depth below them. */
function Picture({ phases, writes, above }: InPlan & { phases: readonly PlannedPhase[] }) {
  const marks = marksOf(writes, above)
  const marked = phases.filter(({ name }) => marks.has(name)).length
  const drawn = phases.map((phase): Drawable => {
    const mark = marks.get(phase.name)
    return { name: phase.name, after: phase.depends_on, about: aboutOf(phase), ...(mark !== undefined && { mark }) }
  })
  return (
    <>
      <Graph of={drawn} />
      <p class="quiet small">
        {marked === 0
          ? 'No phase writes to other systems, except by its commands.'
          : `↗ ${marked} of ${phases.length} phases ${marked === 1 ? 'writes' : 'write'} to other systems.`}
      </p>
    </>
  )
}

/** Where each phase below `above` writes, by its name. */
function marksOf(writes: Plan['writes'], above: readonly string[]): Map<string, string> {
  const inside = writes.filter(
    ({ phase }) => phase.length > above.length && above.every((name, at) => phase[at] === name),
  )
  const byName = Map.groupBy(inside, ({ phase }) => phase[above.length]!)
  return new Map(
    [...byName].map(([name, all]) => [name, `writes to ${[...new Set(all.map(({ to }) => to))].join(', ')}`]),
  )
}

/** The phases of a team, as a graph and as a list. An entry of the list opens to its inputs and to the team below. */
function TeamPhases({
  team,
  writes,
  above = [],
}: {
  team: PlannedTeam
  writes: Plan['writes']
  above?: readonly string[]
}) {
  const { phases, recursive, unheld, listeners = [] } = team
  if (recursive) return <p class="quiet">The team calls itself here.</p>
  return (
    <>
      {unheld !== undefined && <p class="quiet">Its key {unheld} is held only when it is started by itself.</p>}
      <Picture phases={phases} writes={writes} above={above} />
      <ul class="files">
        {phases.map(phase => (
          <Phase key={phase.name} of={phase} writes={writes} above={above} />
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

function Phase({ of, writes, above }: InPlan & { of: PlannedPhase }) {
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
          {below && <TeamPhases team={below} writes={writes} above={[...above, name]} />}
        </div>
      )}
    </li>
  )
}
