// `daemons`: the machines of a realm as the hub sees them.

import { formatDuration } from '../../../duration.ts'
import { line, type Paint, type Printable } from '../../../printable.ts'
import { printJson } from '../../../terminal.ts'
import {
  ApproveDaemon,
  GetDaemon,
  ListDaemons,
  RemoveDaemon,
  type SeenDaemon,
  UpdateDaemon,
} from '../../../wire/hub-admin-calls.ts'
import { homeFolder } from '../../home.ts'
import { hubOf } from '../hub-client.ts'
import { daemonOf, every, realmIdOf } from './names.ts'
import { confirmed, done, list, type Options, type PageOptions, pageOf, record, relative } from './output.ts'

interface InRealm {
  realm?: string
}

/** A clock that is wrong by more is told in lists. */
const CLOCK_MS = 5_000

type Readiness = NonNullable<SeenDaemon['agents'][number]['doctor']>

/** What the doctor of a daemon found about an agent, in words. */
const FOUND: Readonly<Record<string, string>> = {
  fine: 'ready',
  settings: 'set up, no system was asked',
  wrong: 'not ready',
  unset: 'not set up',
}

export async function listDaemons(options: PageOptions & InRealm): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const realm = options.realm === undefined ? {} : { realm_id: await realmIdOf(client, options.realm) }
  const found = await client.call(ListDaemons, { ...pageOf(options), ...realm })
  list(options, found, found.daemons, (daemon, paint) => [
    line`${mark(daemon, paint)} ${paint.bold(daemon.name)}`,
    stateOf(daemon),
    daemon.capacity === null ? '' : `${daemon.capacity} slots`,
    labelsText(daemon),
    sandboxText(daemon),
    paint.dim(daemon.id),
  ])
}

function mark({ status, approved, stuck, paused }: SeenDaemon, paint: Paint): Printable {
  if (status !== 'online') return paint.dim('○')
  return !approved || stuck || paused ? paint.yellow('!') : paint.green('●')
}

/** `online`, or why it does not work, and whether its clock is wrong. */
function stateOf(daemon: SeenDaemon): string {
  const { status, approved, stuck, paused, last_seen_at } = daemon
  const clock = Math.abs(daemon.clock_offset ?? 0) < CLOCK_MS ? '' : clockText(daemon)
  const flags = [!approved && 'waits for approval', paused && 'paused', stuck && 'does not work', clock].filter(Boolean)
  const seen = status === 'online' ? 'online' : `${status}, last seen ${formatDuration(Date.now() - last_seen_at)} ago`
  return [seen, ...flags].join(', ')
}

function clockText({ clock_offset: ahead = null }: SeenDaemon): string {
  if (ahead === null) return ''
  return ahead === 0 ? 'clock as here' : `clock ${formatDuration(Math.abs(ahead))} ${ahead > 0 ? 'ahead' : 'behind'}`
}

/** Where its commands run; empty when it does not say. */
function sandboxText({ sandbox }: SeenDaemon): string {
  return sandbox === 'none' ? 'no sandbox' : (sandbox ?? '')
}

const labelsText = ({ labels }: SeenDaemon): string =>
  Object.entries(labels)
    .map(([name, value]) => (value === 'yes' ? name : `${name}=${value}`))
    .join(' ')

export async function showDaemon(wanted: string, options: Options): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const daemon = await client.call(GetDaemon, { daemon_id: (await daemonOf(client, wanted)).id })
  record(options, daemon, paint => ({
    title: daemon.name,
    facts: [
      ['state', stateOf(daemon)],
      ['id', daemon.id],
      ['realm', daemon.realm_id],
      ['host', daemon.hostname ?? ''],
      ['version', daemon.version ?? ''],
      ['slots', `${daemon.capacity ?? ''}`],
      ['sandbox', sandboxText(daemon)],
      ['registered', relative(daemon.registered_at)],
      ['last seen', relative(daemon.last_seen_at)],
      ['clock', clockText(daemon).replace('clock ', '')],
      ['labels', labelsText(daemon)],
      ['workspaces', daemon.workspaces.join(', ')],
    ],
    sections: [
      [
        'agents',
        daemon.agents.map(({ name, version, doctor }) => [
          line`${sign(doctor, paint)} ${name}`,
          version,
          doctor === undefined ? 'not asked' : (FOUND[doctor] ?? doctor),
        ]),
      ],
    ],
  }))
}

function sign(found: Readiness | undefined, paint: Paint): Printable {
  if (found === 'fine') return paint.green('✓')
  return found === 'wrong' ? paint.red('✗') : paint.dim(found === undefined ? '?' : found === 'settings' ? '·' : '–')
}

/** A grid of what the doctors found: an agent a row, a daemon a column. Agents that nobody has set up are left out. */
export async function doctorGrid(options: Options & InRealm): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const realm = options.realm === undefined ? {} : { realm_id: await realmIdOf(client, options.realm) }
  const daemons = await every(async page => {
    const { daemons, total } = await client.call(ListDaemons, { ...realm, ...page })
    return { items: daemons, total }
  })
  const names = [...new Set(daemons.flatMap(({ agents }) => agents.map(({ name }) => name)))].sort()
  const found = (daemon: SeenDaemon, agent: string) => daemon.agents.find(({ name }) => name === agent)
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

export async function approveDaemon(wanted: string, options: Options): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const { id: daemon_id, name } = await daemonOf(client, wanted)
  done(options, await client.call(ApproveDaemon, { daemon_id }), `${name} gets jobs now`)
}

/** A paused daemon finishes what it has and takes no more runs. */
export async function pauseDaemon(wanted: string, paused: boolean, options: Options): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const { id: daemon_id, name } = await daemonOf(client, wanted)
  const reply = await client.call(UpdateDaemon, { daemon_id, paused })
  done(options, reply, `${name} ${paused ? 'finishes what it has and takes no more runs' : 'takes runs again'}`)
}

export async function removeDaemon(wanted: string, options: Options & { yes?: boolean }): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const { id: daemon_id, name } = await daemonOf(client, wanted)
  await confirmed(`Remove daemon ${name}? Its runs that have not ended count as crashed.`, options)
  done(options, await client.call(RemoveDaemon, { daemon_id }), `removed daemon ${name}`)
}
