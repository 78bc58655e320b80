// The page of one daemon: what it reports of itself, and the buttons of operators.

import { sizeText } from '../../size.ts'
import { ApproveDaemon, GetDaemon, RemoveDaemon, UpdateDaemon } from '../../wire/calls/daemons.ts'
import type { Daemon } from '../../wire/records/hub-records.ts'
import { waitingWords } from '../../wire/worries.ts'
import { ActionButton } from '../kit/actions.tsx'
import { REFRESH_MS, Table } from '../kit/lists.tsx'
import { Failure, useLoaded } from '../kit/parts.tsx'
import { to } from '../kit/route.ts'
import { UpcomingTime, When } from '../kit/time.tsx'
import { hub } from './kit/api.ts'
import { AGENT_MEANINGS, AgentState, Labels, Status, Worries } from './kit/daemon-state.tsx'
import { forbids, realmName, realms } from './kit/realm-choice.tsx'

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
        <Actions daemon={daemon} forbids={need => forbids(realm, need)} again={again} />
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
      <Worries of={daemon} />
      <dl class="facts-list">
        <Fact name="Host">{daemon.hostname ?? 'not reported'}</Fact>
        <Fact name="cadre">{daemon.version ?? 'not reported'}</Fact>
        <Fact name="Slots">{daemon.capacity ?? 'not reported'}</Fact>
        <Fact name="Sandbox">{daemon.sandbox ?? 'not reported'}</Fact>
        <Fact name="Clock">{offsetOf(daemon.clock_offset)}</Fact>
        {daemon.standing && <Standing of={daemon.standing} />}
        {daemon.token_expires_at != null && (
          <Fact name="Realm token ends">
            <UpcomingTime at={daemon.token_expires_at} />
          </Fact>
        )}
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
                    <span class="small quiet">{agent.text ?? AGENT_MEANINGS[agent.doctor]}</span>
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

/** What the daemon says of itself. */
function Standing({ of }: { of: NonNullable<Daemon['standing']> }) {
  const { disk_free: free, outbox, last_error: error, credentials_expire: credentials = [] } = of
  return (
    <>
      {free != null && <Fact name="Disk">{sizeText(free)} free</Fact>}
      {outbox && <Fact name="Waits for the hub">{waitingWords(outbox)}</Fact>}
      {credentials.length > 0 && (
        <Fact name="Credentials">
          {credentials.map(({ name, at }) => (
            <span key={name}>
              {name} ends <UpcomingTime at={at} />{' '}
            </span>
          ))}
        </Fact>
      )}
      {error && (
        <Fact name="Last error">
          {error.text} (<When at={error.at} />)
        </Fact>
      )}
    </>
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

function Actions({
  daemon,
  forbids,
  again,
}: {
  daemon: Daemon
  forbids(need: 'operator' | 'admin'): string | null
  again(): void
}) {
  const { id: daemon_id } = daemon
  if (daemon.status === 'removed') return null
  return (
    <div class="row">
      {!daemon.approved && (
        <ActionButton forbidden={forbids('operator')} send={send => send(ApproveDaemon, { daemon_id })} done={again}>
          Approve
        </ActionButton>
      )}
      {daemon.status === 'online' && (
        <ActionButton
          plain
          forbidden={forbids('operator')}
          send={send => send(UpdateDaemon, { daemon_id, examine: true })}
          done={again}
        >
          Examine agents
        </ActionButton>
      )}
      <ActionButton
        plain
        forbidden={forbids('operator')}
        send={send => send(UpdateDaemon, { daemon_id, paused: !daemon.paused })}
        done={again}
        undo={{
          what: daemon.paused ? `${daemon.name} takes runs again.` : `${daemon.name} is paused.`,
          send: send => send(UpdateDaemon, { daemon_id, paused: daemon.paused }),
        }}
      >
        {daemon.paused ? 'Take runs again' : 'Pause'}
      </ActionButton>
      <ActionButton
        forbidden={forbids('admin')}
        question={`Remove ${daemon.name}? It gets no more runs and has to enrol anew. Its runs that go on are shown as crashed.`}
        typed={daemon.name}
        send={send => send(RemoveDaemon, { daemon_id })}
        done={again}
      >
        Remove
      </ActionButton>
    </div>
  )
}
