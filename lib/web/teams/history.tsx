// What the page of a run says of the runs before it: their states, how long they usually take, and what changed since the last
// one that completed.

import type { Static } from 'typebox'
import type { Json } from '../../json.ts'
import { GetRunStats } from '../../wire/calls/runs.ts'
import { GetTeamHistory } from '../../wire/calls/teams.ts'
import type { RunDetailView } from '../../wire/records/run-records.ts'
import { tookMs } from '../../wire/records/words.ts'
import { call } from '../kit/api.ts'
import { useLoaded } from '../kit/parts.tsx'
import { to } from '../kit/route.ts'
import { durationOf } from '../kit/time.tsx'
import { inPlace } from '../triggers/place.ts'
import { Strip } from './strip.tsx'

type Told = Static<typeof GetTeamHistory.data>['runs'][number]

const SHOWN = 20

export function RunHistory({ run }: { run: RunDetailView }) {
  const { run_id, team, realm_id } = run
  const { data } = useLoaded(`history ${run_id} ${run.state} ${run.attempt}`, async () => {
    const place = { ...inPlace(realm_id === undefined ? {} : { realm_id }), team }
    const [history, stats] = await Promise.all([
      call(GetTeamHistory, { ...place, upto: run_id, limit: SHOWN }),
      call(GetRunStats, place),
    ])
    return { runs: history.runs, stats }
  })
  const told = data?.runs.find(each => each.run_id === run_id)
  return (
    <section class="history small" aria-label="History">
      {data && told && (
        <>
          <Strip runs={data.runs} here={run_id} />
          <Usual of={run} stats={data.stats} />
          <Changes of={told} among={data.runs} />
        </>
      )}
    </section>
  )
}

/** How long the runs of the last 30 days took, and whether this one took longer than most. */
function Usual({ of: run, stats }: { of: RunDetailView; stats: Static<typeof GetRunStats.data> }) {
  const { completed, p50_ms, p95_ms } = stats
  if (p50_ms === null || p95_ms === null || completed < 2) return null
  const took = tookMs(run)
  const isSlow = took !== null && took > p95_ms
  return (
    <span>
      {isSlow && <span class="badge">slower than usual</span>} usually <span class="number">{durationOf(p50_ms)}</span>,
      95 % within <span class="number">{durationOf(p95_ms)}</span>
    </span>
  )
}

function Changes({ of: told, among }: { of: Told; among: readonly Told[] }) {
  const { changed, compared_to } = told
  if (compared_to === null) return <span class="quiet">No run before it completed.</span>
  const good = <a href={to('runs', compared_to)}>last good run</a>
  if (changed.length === 0) return <span class="quiet">The same as the {good}.</span>
  const before = among.find(each => each.run_id === compared_to)
  return (
    <span class="wrap">
      Changed since the {good}: {changed.map(name => changeText(name, told, before)).join('; ')}
    </span>
  )
}

const NAMES: Record<string, string> = {
  team: 'the text of the team, at the same version',
  inputs: 'the inputs',
  agents: 'the agents',
  daemon: 'the daemon',
}
/** A longer value is not shown. */
const LONGEST = 40

/** What differs, with both values where they are short. */
function changeText(name: string, told: Told, before: Told | undefined): string {
  if (Object.hasOwn(NAMES, name)) return NAMES[name]!
  const isInput = name.startsWith('inputs.')
  const words = isInput ? `input ${name.slice('inputs.'.length)}` : name
  const valueIn = (run: Told): Json =>
    (isInput ? run.inputs?.[name.slice('inputs.'.length)] : run[name as 'version']) ?? 'none'
  if (!before) return words
  const [from, until] = [before, told]
    .map(valueIn)
    .map(value => (typeof value === 'string' ? value : JSON.stringify(value)))
  return Math.max(from!.length, until!.length) > LONGEST ? words : `${words} ${from} → ${until}`
}
