// One run: the parts of the daemon's own page, with the daemon and the realm that it runs in.

import { useEffect, useMemo } from 'preact/hooks'
import { Files } from '../files.tsx'
import { useKeys } from '../keys.tsx'
import { type Detail, Live } from '../live.ts'
import { Logs } from '../logs.tsx'
import { Act, Failure, Json, useLoaded } from '../parts.tsx'
import { Phases } from '../phases.tsx'
import { Review } from '../reviews.tsx'
import { go, route, to } from '../route.ts'
import { State } from '../state.tsx'
import { Took, When } from '../time.tsx'
import { Tree } from '../tree.tsx'
import { Reasons } from '../why.tsx'
import { hub } from './api.ts'
import { Sure } from './asking.tsx'
import { may, realmName, realms } from './realm-choice.tsx'

const TABS = { phases: 'Phases', tree: 'Tree', logs: 'Log', files: 'Files', why: 'Why' } as const
type Tab = keyof typeof TABS

export function OneRun({ id }: { id: string }) {
  const live = useMemo(() => new Live(id), [id])
  useEffect(() => () => live.close(), [live])
  const chosen = route.value.parts[2]
  const tab: Tab = chosen !== undefined && chosen in TABS ? (chosen as Tab) : 'phases'
  const names = Object.keys(TABS) as Tab[]
  useKeys(Object.fromEntries(names.map((name, index) => [String(index + 1), () => go(to('runs', id, name))])))
  const run = live.run.value
  if (!run) {
    return (
      <main>
        <p class="crumbs">
          <a href={to('runs')}>Runs</a>
        </p>
        <Failure of={live.error.value} />
      </main>
    )
  }
  const asked = live.reviews.value.filter(({ state }) => state === 'pending')
  const again = () => live.again()
  return (
    <main>
      <Head run={run} again={again} />
      <Failure of={live.error.value} />
      {!live.connected.value && (
        <div class="notice awaiting_input" role="status">
          The connection to the hub was lost. The page tries again every second.
        </div>
      )}
      {run.error && (
        <div class="notice failed">
          <p class="wrap">{run.error.message}</p>
          {run.error.hint && <p class="quiet wrap">{run.error.hint}</p>}
        </div>
      )}
      <nav class="tabs" aria-label="Parts of the run">
        {names.map(name => (
          <a key={name} href={to('runs', id, name)} aria-current={name === tab ? 'page' : undefined}>
            {TABS[name]}
            {name === 'tree' && live.tree.value.length > 1 && (
              <span class="count">{live.tree.value.length.toLocaleString('en')}</span>
            )}
          </a>
        ))}
      </nav>
      {tab !== 'phases' && asked.length > 0 && (
        <div class="notice awaiting_input">
          <p>
            <a href={to('runs', id)}>{asked.map(({ phase }) => phase).join(', ')}</a> waits for an answer.
          </p>
        </div>
      )}
      {tab === 'phases' && (
        <>
          {asked.map(review => (
            <Review key={review.id} review={review} done={again} />
          ))}
          <Phases live={live} run={run} />
          <Values title="Inputs" of={run.inputs} />
          <Values title="Outputs" of={run.outputs} />
        </>
      )}
      {tab === 'tree' && <Tree live={live} />}
      {tab === 'logs' && (
        <>
          <LogState id={id} ended={run.completed_at !== null} />
          <Logs live={live} run={run} />
        </>
      )}
      {tab === 'files' && <Files run={run} />}
      {tab === 'why' && <Reasons run={run} />}
      <p class="unseen" role="status">
        {run.completed_at === null ? '' : `The run is ${run.state}.`}
      </p>
    </main>
  )
}

function Values({ title, of }: { title: string; of: object | null }) {
  if (of === null || Object.keys(of).length === 0) return null
  return (
    <details class="part">
      <summary>{title}</summary>
      <Json of={of} />
    </details>
  )
}

/** What the hub knows of a run besides what its daemon shows, too. */
function usePlace(run: Detail) {
  const { data } = useLoaded(`place ${run.run_id} ${run.state}`, async () => {
    const { realm_id, daemon_id } = await hub('runs/get', { run_id: run.run_id })
    const daemon = daemon_id === null ? null : await hub('daemons/get', { daemon_id }).catch(() => null)
    return { realm_id, daemon_id, daemon }
  })
  return data
}

function Head({ run, again }: { run: Detail; again(): Promise<void> }) {
  const place = usePlace(run)
  const realm = realms.value?.find(({ id }) => id === place?.realm_id)
  const operates = may(realm, 'operator')
  const { run_id } = run
  const top = run.root_run_id === run_id
  return (
    <>
      <p class="crumbs">
        <a href={to('runs')}>Runs</a>
        {!top && (
          <>
            {' / '}
            <a href={to('runs', run.root_run_id, 'tree')}>top run</a>
          </>
        )}
        {run.parent_run_id !== null && run.parent_run_id !== run.root_run_id && (
          <>
            {' / '}
            <a href={to('runs', run.parent_run_id)}>run above</a>
          </>
        )}
      </p>
      <header class="top">
        <div>
          <h1 class="wrap">{run.run_name ?? run.team}</h1>
          <p class="facts">
            <State of={run.state} />
            {run.state === 'queued' && run.reason !== null && <span class="wrap">{run.reason}</span>}
            <span>
              {run.team} {run.version}
            </span>
            {run.attempt > 1 && <span>attempt {run.attempt}</span>}
            <span>
              started <When at={run.started_at} />
            </span>
            <span>
              {run.completed_at === null ? 'for' : 'took'} <Took from={run.started_at} until={run.completed_at} />
            </span>
          </p>
          <p class="facts quiet small">
            {place && <a href={to('realms', place.realm_id)}>{realmName(place.realm_id)}</a>}
            {place?.daemon_id && (
              <span>
                on <a href={to('daemons', place.daemon_id)}>{place.daemon?.name ?? place.daemon_id}</a>
                {place.daemon && place.daemon.status !== 'online' && ` (${place.daemon.status})`}
              </span>
            )}
            <code>{run_id}</code>
          </p>
        </div>
        {operates && (
          <div class="row actions">
            {top && run.completed_at === null && (
              <Sure
                question="What runs is stopped."
                work={async () => {
                  await hub('dispatch/cancel', { run_id })
                  await again()
                }}
              >
                Cancel
              </Sure>
            )}
            {top && (run.state === 'failed' || run.state === 'cancelled') && (
              <Act
                work={async () => {
                  await hub('dispatch/resume', { run_id })
                  await again()
                }}
              >
                Continue
              </Act>
            )}
            {top && (
              <a class="button plain" href={`${to('dispatch')}?like=${run_id}`}>
                Dispatch again
              </a>
            )}
          </div>
        )}
      </header>
    </>
  )
}

/** How much of the log the hub has. */
function LogState({ id, ended }: { id: string; ended: boolean }) {
  const { data } = useLoaded(`log ${id}`, () => hub('runs/logs', { run_id: id, limit: 1 }), 5_000)
  if (!data || data.complete) return null
  if (data.kept) {
    return (
      <div class="notice">
        <p>
          The lines are on the machine of the daemon, whose setting <code>sync</code> is <code>status</code>.
        </p>
      </div>
    )
  }
  const ranges = data.missing.map(({ from, to }) => (from === to ? `line ${from}` : `lines ${from} to ${to}`))
  return (
    <>
      {ranges.length > 0 && (
        <div class="notice failed">
          <p>{ranges.join(', ')} did not reach the hub, and will not.</p>
        </div>
      )}
      {ended && data.to_come && (
        <div class="notice">
          <p>Lines from {data.to_come.from} on are still to come.</p>
        </div>
      )}
    </>
  )
}
