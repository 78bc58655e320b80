// What lists and the page of a daemon say of it: whether it answers and takes runs, its labels, and whether its agents are
// ready.

import type { Daemon } from '../../../wire/records/hub-records.ts'
import { worriesOf } from '../../../wire/worries.ts'
import { command } from '../../kit/api.ts'
import { serverNow } from '../../kit/clock.ts'
import { Table } from '../../kit/lists.tsx'
import { Empty } from '../../kit/parts.tsx'
import { State } from '../../kit/state.tsx'

/** The state of a daemon, in the shapes of runs. */
const STATES: Record<string, string> = {
  online: 'completed',
  stale: 'awaiting_input',
  offline: 'cancelled',
  removed: 'cancelled',
}

export function Status({ of }: { of: Daemon }) {
  if (of.status === 'online' && !of.approved) return <State of="awaiting_input" word="waits for approval" />
  if (of.status === 'online' && of.stuck) return <State of="failed" word="stuck" />
  if (of.status === 'online' && of.paused) return <State of="interrupted" word="paused" />
  return <State of={STATES[of.status] ?? 'pending'} word={of.status} />
}

/** What people have to do about it. */
export function Worries({ of }: { of: Daemon }) {
  const worries = worriesOf(of, serverNow())
  if (worries.length === 0) return null
  return (
    <ul class="small" aria-label="To look at">
      {worries.map(text => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  )
}

export function Labels({ of: { labels } }: { of: Daemon }) {
  return (
    <ul class="labels" aria-label="Labels">
      {Object.entries(labels).map(([name, value]) => (
        <li key={name}>
          {name}
          {value !== 'yes' && <span class="quiet">={value}</span>}
        </li>
      ))}
    </ul>
  )
}

type Readiness = NonNullable<Daemon['agents'][number]['doctor']>
const READY: Record<string, { shape: string; word: string }> = {
  fine: { shape: 'completed', word: 'ready' },
  settings: { shape: 'pending', word: 'set' },
  wrong: { shape: 'failed', word: 'refused' },
  unset: { shape: 'skipped', word: 'not set' },
}
export const AGENT_MEANINGS: Record<string, string> = {
  fine: 'The other system accepts its credential.',
  settings: 'Its settings are complete. The other system was not asked.',
  wrong: 'The other system refuses its credential, or a permission is missing.',
  unset: 'Settings are missing.',
}

export function AgentState({ of, version }: { of: Readiness | undefined; version: string }) {
  if (of === undefined) return <span class="quiet small">{version}</span>
  // A newer daemon may have others, which are shown as they are.
  const { shape, word } = READY[of] ?? { shape: 'pending', word: of }
  return (
    <span title={`${version}: ${AGENT_MEANINGS[of] ?? of}`}>
      <State of={shape} word={word} />
    </span>
  )
}

/** Daemon by agent: where a team can run, and what is missing elsewhere. */
export function AgentTable({ daemons }: { daemons: readonly Daemon[] }) {
  const agents = [...new Set(daemons.flatMap(({ agents }) => agents.map(({ name }) => name)))].sort()
  if (agents.length === 0) {
    return (
      <Empty>
        <p>No daemon has reported its agents.</p>
      </Empty>
    )
  }
  return (
    <>
      <Table matrix head={['Agent', ...daemons.map(({ name }) => name)]}>
        {agents.map(agent => (
          <tr key={agent}>
            <th scope="row">{agent}</th>
            {daemons.map(daemon => {
              const offered = daemon.agents.find(({ name }) => name === agent)
              return (
                <td key={daemon.id}>
                  {offered ? (
                    <AgentState of={offered.doctor} version={offered.version} />
                  ) : (
                    <span class="quiet">–</span>
                  )}
                </td>
              )
            })}
          </tr>
        ))}
      </Table>
      <p class="small quiet">
        What <code>{command} doctor</code> found on each machine.
      </p>
    </>
  )
}
