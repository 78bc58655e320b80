// The phases of a run, each with its bar on the timeline. An opened phase shows everything that is recorded of it.

import { sizeText } from '../../size.ts'
import { GetPhases, GetTeam } from '../../wire/calls/runs.ts'
import { waitText } from '../../wire/records/words.ts'
import { call } from '../kit/api.ts'
import { serverNow } from '../kit/clock.ts'
import { Empty, Json, useLoaded } from '../kit/parts.tsx'
import { printing } from '../kit/printing.ts'
import { route, setQuery, to, withQuery } from '../kit/route.ts'
import { State, Tolerated, wordOf } from '../kit/state.tsx'
import { Duration, When } from '../kit/time.tsx'
import { Attempts, partsOf, readyAt, Writes } from './attempts.tsx'
import type { Detail, Live, Phase } from './live.ts'
import { PhaseInputs } from './plan.tsx'
import { Resume } from './resume.tsx'
import { Axis, Bar, Legend, scaleOf } from './timeline.tsx'

/** A phase shows at most this many sub-runs. The tree has all of them. */
const MOST_SUB_RUNS = 50

export function Phases({ live, run }: { live: Live; run: Detail }) {
  const open = route.value.query.get('phase')
  const phases = live.phases.value
  if (phases.length === 0) {
    return (
      <Empty>
        <p>This run has no phases.</p>
      </Empty>
    )
  }
  const scale = scaleOf({ from: run.started_at ?? serverNow(), until: run.completed_at })
  const byName = new Map(phases.map(phase => [phase.name, phase]))
  const bars = phases.map(phase => {
    const reviews = live.reviews.value.filter(({ phase: name }) => name === phase.name)
    const earlier = live.history.value.attempts.filter(each => each.phase === phase.name)
    return partsOf(phase, earlier, readyAt(phase, byName, run.started_at), reviews, scale)
  })
  const tolerated = toleratedBelow(live, run)
  return (
    <>
      <div class="phase-row scale">
        <Legend of={bars} />
        <Axis scale={scale} />
      </div>
      <ol class="phases">
        {phases.map((phase, index) => {
          return (
            <li key={phase.name}>
              <details
                class="phase"
                open={phase.name === open}
                onToggle={({ currentTarget }) => {
                  const current = route.value.query.get('phase')
                  if (currentTarget.open && current !== phase.name) setQuery({ phase: phase.name })
                  else if (!currentTarget.open && current === phase.name) setQuery({ phase: '' })
                }}
              >
                <summary class="phase-row">
                  <State of={phase.state} bare />
                  <h2 class="name">{phase.name}</h2>
                  <span class="quiet small about">
                    <Tolerated count={phase.state === 'completed' ? tolerated.get(phase.name) : 0} />
                    {aboutOf(phase, run)}
                  </span>
                  <Bar parts={bars[index]!} scale={scale} />
                  <span class="small took">
                    <Duration from={phase.started_at} until={phase.completed_at} />
                  </span>
                </summary>
                {(phase.name === open || printing.value) && <PhaseDetails phase={phase} run={run} live={live} />}
              </details>
            </li>
          )
        })}
      </ol>
    </>
  )
}

/** The agent of a phase with its action, or the type of the phase. */
export function workerName({ type, agent, action }: Pick<Phase, 'type' | 'agent' | 'action'>): string {
  if (!agent) return type
  return action ? `${agent}.${action}` : agent
}

/** How many failures each phase passed over if it completed. Of a phase with turns the last one counts. */
function toleratedBelow({ tree, phases }: Live, { call_depth }: Detail): Map<string, number> {
  const maps = new Set(phases.value.flatMap(({ type, name }) => (type === 'map' ? [name] : [])))
  const counts = new Map<string, number>()
  for (const { state, tolerated, parent_phase, call_depth: depth } of tree.value) {
    if (depth !== call_depth + 1 || parent_phase === null) continue
    const before = maps.has(parent_phase) ? (counts.get(parent_phase) ?? 0) : 0
    counts.set(parent_phase, before + (state === 'failed' ? 1 : (tolerated ?? 0)))
  }
  return counts
}

/** The runs right below the run, the worst first. */
function childrenOf(live: Live, run_id: string) {
  const rows = live.ranked.value
  const depth = (rows[0]?.run.run_id === run_id ? rows[0].run.call_depth : 0) + 1
  return rows.filter(({ run }) => run.call_depth === depth)
}

function aboutOf(phase: Phase, run: Detail): string {
  const { state, attempt, waiting = null, reason, turns = [] } = phase
  const turn = turns.at(-1)?.turn
  const now = waiting === null ? wordOf(state) : `${state === 'running' ? 'waits:' : 'waits for'} ${waitText(waiting)}`
  const parts = [
    workerName(phase),
    now,
    turn ? `turn ${turn}` : attempt > 1 && `attempt ${attempt}`,
    waiting === null && reason,
    // Before the run has completed, a failure may still end it.
    state === 'failed' && run.state === 'completed' && 'tolerated',
  ]
  return parts.filter(Boolean).join(' · ')
}

/** The phase with its text and data. A reply for all phases leaves them out when they are large. */
function useFullPhase(phase: Phase, { run_id }: Detail): Phase {
  const isCut = phase.text_bytes !== undefined || phase.data_bytes !== undefined
  const key = `phase ${run_id} ${phase.name} ${phase.attempt} ${phase.state}`
  const found = useLoaded(isCut ? key : 'no phase', async () =>
    isCut ? await call(GetPhases, { run_id, phase: phase.name }) : null,
  )
  return (isCut && found.data?.phases[0]) || phase
}

function PhaseDetails({ phase: listed, run, live }: { phase: Phase; run: Detail; live: Live }) {
  const phase = useFullPhase(listed, run)
  const { name, depends_on, started_at, error, text, data, files, sub_runs_more } = phase
  const inTree = childrenOf(live, run.run_id).flatMap(each => (each.run.parent_phase === name ? [each.run] : []))
  // The tree is read after the phases.
  const sub_runs = inTree.length >= phase.sub_runs.length ? inTree : phase.sub_runs
  const { attempts, written } = live.history.value
  const earlier = attempts.filter(each => each.phase === name)
  const writes = written.filter(each => each.phase === name)
  return (
    <div class="opened">
      <p class="facts small quiet">
        <span>
          started <When at={started_at} />
        </span>
        {depends_on.length > 0 && <span>after {depends_on.join(', ')}</span>}
        <a href={withQuery(to('runs', run.run_id, 'logs'), { phase: name })}>log</a>
      </p>
      {error && (
        <div class="notice failed">
          <p class="wrap">
            <code>{error.code}</code> {error.message}
          </p>
          {error.hint && <p class="quiet wrap">{error.hint}</p>}
        </div>
      )}
      {phase.text_bytes !== undefined && <p class="quiet">The text has {sizeText(phase.text_bytes)}.</p>}
      {phase.data_bytes !== undefined && <p class="quiet">The data has {sizeText(phase.data_bytes)}.</p>}
      {text !== null && text !== '' && <p class="wrap">{text}</p>}
      {writes.length > 0 && (
        <>
          <h3>Written outside</h3>
          <Writes of={writes} />
        </>
      )}
      <Attempts phase={phase} earlier={earlier} />
      {sub_runs.length > 0 && (
        <>
          <h3>Sub-runs</h3>
          <ul class="plain">
            {sub_runs.slice(0, MOST_SUB_RUNS).map(each => (
              <li key={each.run_id}>
                <State of={each.state} bare /> <a href={to('runs', each.run_id)}>{each.run_name ?? each.run_id}</a>
              </li>
            ))}
          </ul>
          {(sub_runs_more || sub_runs.length > MOST_SUB_RUNS) && (
            <p>
              <a href={to('runs', run.run_id, 'tree')}>
                All {!sub_runs_more && sub_runs.length.toLocaleString('en')} in the tree
              </a>
            </p>
          )}
        </>
      )}
      {files.length > 0 && (
        <>
          <h3>Files</h3>
          <ul class="plain">
            {files.map(({ path }) => (
              <li key={path}>
                <a href={withQuery(to('runs', run.run_id, 'files'), { path })}>{path}</a>
              </li>
            ))}
          </ul>
        </>
      )}
      {data !== null && (
        <>
          <h3>Data</h3>
          <Json of={data} />
        </>
      )}
      <InputsInTeam run={run} phase={name} />
      {run.completed_at !== null && run.parent_run_id === null && started_at !== null && (
        <Resume live={live} what={{ from_phase: name }} plain>
          Run again from here
        </Resume>
      )}
    </div>
  )
}

/** The inputs of the phase, as the file of the team has them. */
function InputsInTeam({ run: { run_id }, phase }: { run: Detail; phase: string }) {
  const { data } = useLoaded(`team ${run_id}`, () => call(GetTeam, { run_id }))
  const found = data?.phases.find(({ name }) => name === phase)
  if (!found || found.type === 'gate') return null
  return (
    <>
      <h3>Inputs, as the team has them</h3>
      <PhaseInputs of={found} />
    </>
  )
}
