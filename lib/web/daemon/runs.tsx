// The page with the runs of this daemon.

import { RUN_STATES } from '../../wire/states.ts'
import { ask, command, failureOf } from '../kit/api.ts'
import { useLoaded } from '../kit/parts.tsx'
import { filters, to } from '../kit/route.ts'
import { RunFilters, RunList } from '../run/runs.tsx'

const REFRESH_MS = 10_000

export function Runs() {
  const { chosen, filter } = filters('state', 'team', 'started_by', 'search')
  const { state, team, started_by, search } = chosen
  // Most homes have no hub, or nothing to say of it.
  const link = useLoaded('notice of the hub', () => import('./hub-link.tsx')).data
  return (
    <main>
      <header class="top">
        <h1>Runs</h1>
        <a class="button" href={to('start')}>
          Start a run
        </a>
      </header>
      <CopiedHome />
      {link && <link.HubLinkNotice />}
      <RunFilters states={RUN_STATES} chosen={chosen} filter={filter} searched="name, team, id, input or error" />
      <RunList filter={{ state, team, started_by, search: search.trim() }}>
        <p>Nothing has run here yet.</p>
        <p>
          Try <code>{command} run examples/repo-report</code>, or <a href={to('start')}>start a run</a>.
        </p>
      </RunList>
    </main>
  )
}

/** Says that the home was copied, as long as runs wait for a person because of it. */
function CopiedHome() {
  const runs = useLoaded('copied', health, REFRESH_MS).data?.copied?.runs ?? 0
  if (runs === 0) return null
  return (
    <div class="notice awaiting_input" role="status">
      <p>
        This home was copied or moved. {runs === 1 ? 'One run was' : `${runs} runs were`} unfinished, and may have gone
        on at the other place. Nothing of {runs === 1 ? 'it' : 'them'} happens here until you resume or cancel{' '}
        {runs === 1 ? 'it' : 'each'}. <code>{command} status</code> says where the home was.
      </p>
    </div>
  )
}

/** The health of the daemon, which needs no credential. `copied`: how many runs wait because the home was copied. */
async function health(): Promise<{ copied: { runs: number } | null }> {
  const reply = await ask('/health')
  if (!reply.ok) throw await failureOf(reply)
  return (await reply.json()).data
}
