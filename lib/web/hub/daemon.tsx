// The page of one daemon: what it reports of itself, and the buttons of operators.

import { ApproveDaemon, GetDaemon, RemoveDaemon, UpdateDaemon } from '../../wire/calls/daemons.ts'
import type { Daemon } from '../../wire/records/hub-records.ts'
import { ActionButton, ConfirmButton } from '../kit/actions.tsx'
import { REFRESH_MS, Table } from '../kit/lists.tsx'
import { Failure, useLoaded } from '../kit/parts.tsx'
import { to } from '../kit/route.ts'
import { When } from '../kit/time.tsx'
import { hub } from './kit/api.ts'
import { AGENT_MEANINGS, AgentState, Labels, Status } from './kit/daemon-state.tsx'
import { may, realmName, realms } from './kit/realm-choice.tsx'

export function DaemonPage({ id }: { id: string }) {
  const { data: daemon, error, again } = useLoaded(id, () => hub(GetDaemon, { daemon_id: id }), REFRESH_MS)
  if (!daemon) {
    return (
      <main>
        <p class="crumbs">
          <a href={to('daemons')}>Daemons</a>
        </p>
        <Failure of={error} />
      </main>
    )
  }
  const realm = realms.value?.find(each => each.id === daemon.realm_id)
  return (
    <main>
      <p class="crumbs">
        <a href={to('daemons')}>Daemons</a>
      </p>
      <header class="top">
        <div>
          <h1 class="wrap">{daemon.name}</h1>
          <p class="facts">
            <Status of={daemon} />
            <span>
              called <When at={daemon.last_seen_at} />
            </span>
            <a href={to('realms', daemon.realm_id)}>{realmName(daemon.realm_id)}</a>
          </p>
        </div>
        <Actions daemon={daemon} may={need => may(realm, need)} again={again} />
      </header>
      <Failure of={error} />
      {!daemon.approved && (
        <div class="notice awaiting_input">
          <p>A member of the realm enrolled this daemon. It gets no runs until an operator approves it.</p>
        </div>
      )}
      {daemon.stuck && (
        <div class="notice failed">
          <p>The daemon calls the hub, but its work makes no progress. Look at its log, or start it again.</p>
        </div>
      )}
      {Math.abs(daemon.clock_offset ?? 0) > MOST_OFFSET_MS && (
        <div class="notice awaiting_input">
          <p>
            The clock of this machine is {offsetOf(daemon.clock_offset)}. Set it by NTP: times of runs are shown as the
            daemon reports them.
          </p>
        </div>
      )}
      <dl class="facts-list">
        <Fact name="Host">{daemon.hostname ?? 'not reported'}</Fact>
        <Fact name="cadre">{daemon.version ?? 'not reported'}</Fact>
        <Fact name="Slots">{daemon.capacity ?? 'not reported'}</Fact>
        <Fact name="Sandbox">{daemon.sandbox ?? 'not reported'}</Fact>
        <Fact name="Clock">{offsetOf(daemon.clock_offset)}</Fact>
        <Fact name="Enrolled">
          <When at={daemon.registered_at} />
        </Fact>
        <Fact name="Id">
          <code>{daemon.id}</code>
        </Fact>
        <Fact name="Labels">
          <Labels of={daemon} />
        </Fact>
        <Fact name="Workspaces">{daemon.workspaces.join(', ') || 'none'}</Fact>
      </dl>
      <h2>Agents</h2>
      {daemon.agents.length === 0 ? (
        <p class="quiet">The daemon has not reported its agents.</p>
      ) : (
        <Table head={['Agent', 'Version', 'State']}>
          {daemon.agents.map(agent => (
            <tr key={agent.name}>
              <th scope="row">{agent.name}</th>
              <td class="number">{agent.version}</td>
              <td>
                {agent.doctor ? (
                  <>
                    <AgentState of={agent.doctor} version={agent.version} />{' '}
                    <span class="small quiet">{AGENT_MEANINGS[agent.doctor]}</span>
                  </>
                ) : (
                  <span class="quiet">not asked</span>
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </main>
  )
}

/** A larger offset makes times of runs hard to compare. */
const MOST_OFFSET_MS = 2_000

function offsetOf(ms: number | null = null): string {
  if (ms === null) return 'not known'
  if (Math.abs(ms) < 1_000) return 'right to the second'
  return `${(Math.abs(ms) / 1_000).toFixed(1)} s ${ms > 0 ? 'ahead' : 'behind'}`
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt class="small quiet">{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function Actions({ daemon, may, again }: { daemon: Daemon; may(need: 'operator' | 'admin'): boolean; again(): void }) {
  const { id: daemon_id } = daemon
  if (daemon.status === 'removed') return null
  return (
    <div class="row">
      {may('operator') && !daemon.approved && (
        <ActionButton action={() => hub(ApproveDaemon, { daemon_id })} done={again}>
          Approve
        </ActionButton>
      )}
      {may('operator') && (
        <ActionButton plain action={() => hub(UpdateDaemon, { daemon_id, paused: !daemon.paused })} done={again}>
          {daemon.paused ? 'Take runs again' : 'Pause'}
        </ActionButton>
      )}
      {may('admin') && (
        <ConfirmButton
          question={`Remove ${daemon.name}? Its runs are shown as crashed.`}
          action={() => hub(RemoveDaemon, { daemon_id })}
          done={again}
        >
          Remove
        </ConfirmButton>
      )}
    </div>
  )
}
