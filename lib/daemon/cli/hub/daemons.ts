// `daemons`: the machines of a realm as the hub sees them.

import { formatDuration } from '../../../duration.ts'
import { line, type Paint, type Printable } from '../../../text/printable.ts'
import { printJson } from '../../../text/terminal.ts'
import { ApproveDaemon, GetDaemon, ListDaemons, RemoveDaemon, UpdateDaemon } from '../../../wire/calls/daemons.ts'
import type { Daemon } from '../../../wire/records/hub-records.ts'
import type { HubClient } from '../../link/hub-client.ts'
import { type Entry, option } from '../kit/command-table.ts'
import { daemonOf, every, ofRealm } from '../kit/names.ts'
import { doing } from './entry.ts'
import { changing, listing, showing } from './forms.ts'
import { list, type Options, relative } from './output.ts'

export const ENTRIES: readonly Entry[] = [
  listing('list', 'list daemons with their state and labels', '--realm prod', {
    options: [option('--realm <realm>', 'only daemons of this realm')],
    call: ListDaemons,
    where: ofRealm,
    rows: 'daemons',
    row: (daemon, paint) => [
      line`${mark(daemon, paint)} ${paint.bold(daemon.name)}`,
      stateOf(daemon),
      daemon.capacity === null ? '' : `${daemon.capacity} slots`,
      labelsText(daemon),
      sandboxText(daemon),
      paint.dim(daemon.id),
    ],
  }),
  showing('show <daemon>', 'show a daemon: labels, workspaces, and what its doctor found', 'build-1', {
    find: async (hub, daemon) => hub.call(GetDaemon, { daemon_id: (await daemonOf(hub, daemon)).id }),
    title: ({ name }) => name,
    facts: daemon => [
      ['state', stateOf(daemon)],
      ['id', daemon.id],
      ['realm', daemon.realm_id],
      ['host', daemon.hostname ?? ''],
      ['version', daemon.version ?? ''],
      ...(daemon.commit ? [['commit', daemon.commit] as const] : []),
      ['slots', `${daemon.capacity ?? ''}`],
      ['sandbox', sandboxText(daemon)],
      ['registered', relative(daemon.registered_at)],
      ['last seen', relative(daemon.last_seen_at)],
      ['clock', clockText(daemon).replace('clock ', '')],
      ['labels', labelsText(daemon)],
      ['workspaces', daemon.workspaces.join(', ')],
    ],
    sections: ({ agents }, paint) => [
      [
        'agents',
        agents.map(({ name, version, doctor }) => [
          line`${sign(doctor, paint)} ${name}`,
          version,
          doctor === undefined ? 'not asked' : (FOUND[doctor] ?? doctor),
        ]),
      ],
    ],
  }),
  doing('doctor', 'show which agents are ready on which daemons', '--realm prod', {
    options: [option('--realm <realm>', 'only daemons of this realm')],
    run: doctorGrid,
  }),
  changing('approve <daemon>', 'let a daemon that a plain member enrolled get runs', 'build-1', {
    find: daemonOf,
    call: (hub, { id }) => hub.call(ApproveDaemon, { daemon_id: id }),
    confirmation: ({ name }) => `${name} gets jobs now`,
  }),
  changing('pause <daemon>', 'let a daemon finish its runs and take no more', 'build-1', {
    find: daemonOf,
    call: (hub, { id }) => hub.call(UpdateDaemon, { daemon_id: id, paused: true }),
    confirmation: ({ name }) => `${name} finishes what it has and takes no more runs`,
  }),
  changing('unpause <daemon>', 'let a paused daemon take runs again', 'build-1', {
    find: daemonOf,
    call: (hub, { id }) => hub.call(UpdateDaemon, { daemon_id: id, paused: false }),
    confirmation: ({ name }) => `${name} takes runs again`,
  }),
  changing('remove <daemon>', 'remove a daemon from its realm', 'build-1 --yes', {
    find: daemonOf,
    question: ({ name }) => `Remove daemon ${name}? Its runs that have not ended count as crashed.`,
    call: (hub, { id }) => hub.call(RemoveDaemon, { daemon_id: id }),
    confirmation: ({ name }) => `removed daemon ${name}`,
  }),
]

/** Lists mention a clock that is wrong by more. */
const CLOCK_MS = 5_000

type Readiness = NonNullable<Daemon['agents'][number]['doctor']>

/** What the doctor of a daemon found about an agent, in words. */
const FOUND: Readonly<Record<string, string>> = {
  fine: 'ready',
  settings: 'set up, no system was asked',
  wrong: 'not ready',
  unset: 'not set up',
}

function mark({ status, approved, stuck, paused }: Daemon, paint: Paint): Printable {
  if (status !== 'online') return paint.dim('○')
  return !approved || stuck || paused ? paint.yellow('!') : paint.green('●')
}

/** `online`, or why it does not work, and whether its clock is wrong. */
function stateOf(daemon: Daemon): string {
  const { status, approved, stuck, paused, last_seen_at } = daemon
  const clock = Math.abs(daemon.clock_offset ?? 0) < CLOCK_MS ? '' : clockText(daemon)
  const flags = [!approved && 'waits for approval', paused && 'paused', stuck && 'does not work', clock].filter(Boolean)
  const seen = status === 'online' ? 'online' : `${status}, last seen ${formatDuration(Date.now() - last_seen_at)} ago`
  return [seen, ...flags].join(', ')
}

function clockText({ clock_offset: ahead = null }: Daemon): string {
  if (ahead === null) return ''
  return ahead === 0 ? 'clock as here' : `clock ${formatDuration(Math.abs(ahead))} ${ahead > 0 ? 'ahead' : 'behind'}`
}

/** Where its commands run; empty when it does not say. */
function sandboxText({ sandbox }: Daemon): string {
  return sandbox === 'none' ? 'no sandbox' : (sandbox ?? '')
}

const labelsText = ({ labels }: Daemon): string =>
  Object.entries(labels)
    .map(([name, value]) => (value === 'yes' ? name : `${name}=${value}`))
    .join(' ')

function sign(found: Readiness | undefined, paint: Paint): Printable {
  if (found === 'fine') return paint.green('✓')
  return found === 'wrong' ? paint.red('✗') : paint.dim(found === undefined ? '?' : found === 'settings' ? '·' : '–')
}

/** A grid of what the doctors found: an agent a row, a daemon a column. Agents that nobody has set up are left out. */
async function doctorGrid(hub: HubClient, options: Options & { realm?: string }): Promise<void> {
  const daemons = await every(hub, ListDaemons, 'daemons', await ofRealm(hub, options))
  const names = [...new Set(daemons.flatMap(({ agents }) => agents.map(({ name }) => name)))].sort()
  const found = (daemon: Daemon, agent: string) => daemon.agents.find(({ name }) => name === agent)
  const rows = names.filter(agent => daemons.some(each => !['unset', undefined].includes(found(each, agent)?.doctor)))
  if (options.json) {
    const of = (agent: string) => daemons.map(each => [each.id, found(each, agent)?.doctor ?? null] as const)
    return printJson({ agents: Object.fromEntries(names.map(agent => [agent, Object.fromEntries(of(agent))])) })
  }
  const all = { total: rows.length }
  list({ ...options, offset: 0 }, all, rows, (agent, paint) => [
    paint.bold(agent),
    ...daemons.map(each => {
      const has = found(each, agent)
      return has ? line`${sign(has.doctor, paint)} ${each.name}` : paint.dim(`  ${each.name} has none`)
    }),
  ])
}
