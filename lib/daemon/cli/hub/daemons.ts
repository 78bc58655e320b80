// `daemons`: the machines of a realm as the hub sees them.

import { formatDuration } from '../../../duration.ts'
import { CadreError, messageOf } from '../../../error.ts'
import { sizeText } from '../../../size.ts'
import { line, type Paint, type Printable } from '../../../text/printable.ts'
import { printJson, printMessage } from '../../../text/terminal.ts'
import { ApproveDaemon, GetDaemon, ListDaemons, RemoveDaemon, UpdateDaemon } from '../../../wire/calls/daemons.ts'
import { ListRealmTeams } from '../../../wire/calls/realms.ts'
import type { Daemon } from '../../../wire/records/hub-records.ts'
import { waitingWords, worriesOf } from '../../../wire/worries.ts'
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
    below: lackingTeams,
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
      ...standingFacts(daemon),
      ['labels', labelsText(daemon)],
      ['workspaces', daemon.workspaces.join(', ')],
    ],
    sections: ({ agents }, paint) => [
      [
        'agents',
        agents.map(({ name, version, doctor, text = '' }) => [
          line`${sign(doctor, paint)} ${name}`,
          version,
          doctor === undefined ? 'not asked' : (FOUND[doctor] ?? doctor),
          text,
        ]),
      ],
    ],
  }),
  doing('doctor', 'show which agents are ready on which daemons', '--realm prod', {
    options: [
      option('--realm <realm>', 'only daemons of this realm'),
      option('--now', 'let them look now, and wait for what they find'),
    ],
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

/** The teams that the realms of these daemons may run and that none of their daemons could. */
async function lackingTeams(daemons: readonly Daemon[], hub: HubClient): Promise<string[]> {
  const realms = [...new Set(daemons.map(({ realm_id }) => realm_id))]
  // A token may read daemons and no realms.
  const lists = await Promise.all(
    realms.map(realm_id => every(hub, ListRealmTeams, 'teams', { realm_id }).catch(() => [])),
  )
  return lists.flat().flatMap(({ team, lacks }) => (lacks ? [`no daemon could run ${team}: it needs ${lacks}`] : []))
}

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
  const flags = [
    ...[!approved && 'waits for approval', paused && 'paused', stuck && 'does not work', clock].filter(Boolean),
    ...worriesOf(daemon, Date.now()),
  ]
  const seen = status === 'online' ? 'online' : `${status}, last seen ${formatDuration(Date.now() - last_seen_at)} ago`
  return [seen, ...flags].join(', ')
}

function clockText({ clock_offset: ahead = null }: Daemon): string {
  if (ahead === null) return ''
  return ahead === 0 ? 'clock as here' : `clock ${formatDuration(Math.abs(ahead))} ${ahead > 0 ? 'ahead' : 'behind'}`
}

/** What it says of itself; nothing of one that does not say it. */
function standingFacts({ standing, token_expires_at: tokenEnd }: Daemon): (readonly [string, string])[] {
  const { disk_free: free, outbox, last_error: error, credentials_expire: credentials = [] } = standing ?? {}
  const facts: (readonly [string, string | null | undefined])[] = [
    ['disk', free == null ? null : `${sizeText(free)} free`],
    ['waits for the hub', outbox && waitingWords(outbox)],
    ['last error', error && `${relative(error.at)}: ${error.text}`],
    ['credentials', credentials.map(({ name, at }) => `${name} ends ${relative(at)}`).join(', ') || null],
    ['realm token', tokenEnd == null ? null : `ends ${relative(tokenEnd)}`],
  ]
  return facts.flatMap(([name, text]) => (text ? [[name, text] as const] : []))
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

/** The longest time that the doctors of a daemon get, with its next heartbeats. */
const MOST_WAIT_MS = 100_000
const LOOK_MS = 1_000

/** So many daemons are asked at once. */
const ASKED_AT_ONCE = 5

/**
 * Lets the daemons that are online look, and returns all as they are then. Names those that could not be asked, and those
 * that have not answered.
 */
async function examinedNow(hub: HubClient, daemons: readonly Daemon[]): Promise<Daemon[]> {
  const found = new Map(daemons.map(daemon => [daemon.id, daemon]))
  const waiting = new Map<string, { name: string; since: number }>()
  const asked = daemons.filter(({ status }) => status === 'online')
  await each(asked, async ({ id, name }) => {
    try {
      const { examine } = await hub.call(UpdateDaemon, { daemon_id: id, examine: true })
      waiting.set(id, { name, since: examine ?? 0 })
    } catch (error) {
      printMessage(line`${name} could not be asked, and what it found before is shown: ${messageOf(error)}`)
    }
  })
  for (const end = performance.now() + MOST_WAIT_MS; waiting.size > 0 && performance.now() < end; ) {
    await Bun.sleep(LOOK_MS)
    await each([...waiting], async ([daemon_id, { name, since }]) => {
      try {
        const daemon = await hub.call(GetDaemon, { daemon_id })
        found.set(daemon_id, daemon)
        if ((daemon.examined ?? 0) >= since) waiting.delete(daemon_id)
      } catch (error) {
        // A hub that does not answer now is asked again.
        if (error instanceof CadreError && error.code === 'unavailable') return
        waiting.delete(daemon_id)
        printMessage(line`what ${name} has found cannot be read: ${messageOf(error)}`)
      }
    })
  }
  for (const { name } of waiting.values()) {
    printMessage(
      line`${name} has not answered: this is what it found before. Look at its state, and upgrade it if it is older than this hub.`,
    )
  }
  return [...found.values()]
}

/** Does `work` for all of them, a few at a time. */
async function each<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const left = all.values()
  const worker = async () => {
    for (const one of left) await work(one)
  }
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, worker))
}

/** A grid of what the doctors found: an agent a row, a daemon a column. Agents that nobody has set up are left out. */
async function doctorGrid(hub: HubClient, options: Options & { realm?: string; now?: boolean }): Promise<void> {
  const where = await ofRealm(hub, options)
  const listed = await every(hub, ListDaemons, 'daemons', where)
  const daemons = options.now ? await examinedNow(hub, listed) : listed
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
