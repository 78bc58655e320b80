// `status`: how this home is, with a running daemon and without: the process, its slots and runs, the hub and the realm,
// the disk, and what needs somebody's attention.

import { formatDuration } from '../../../duration.ts'
import { commandLine } from '../../../program/called-as.ts'
import { sizeText } from '../../../size.ts'
import { createPaint, joined, line, type Paint, type Printable, type Shown, wrap } from '../../../text/printable.ts'
import { print, printJson } from '../../../text/terminal.ts'
import { homeFolder } from '../../home/home.ts'
import { ageText, type HubStatus, LINKED, linkText } from '../backend/hub-status.ts'
import { EXIT } from '../kit/exit.ts'
import type { HubOptions } from '../kit/hub-client.ts'
import { columns } from '../kit/print.ts'
import { table } from '../terminal/table.ts'
import { type HomeStatus, homeStatusOf, isStuck } from './home-status.ts'

export async function status(options: HubOptions & { json?: boolean }): Promise<number> {
  const found = await homeStatusOf(homeFolder(options.home), options)
  if (options.json) printJson(found)
  else show(found)
  return found.daemon && isStuck(found.daemon) ? EXIT.failed : EXIT.done
}

function show(found: HomeStatus): void {
  const paint = createPaint(process.stdout)
  const rows = [
    ['home', found.home],
    ['daemon', daemonText(found, paint)],
    ...(found.daemon?.command === 'serve' ? [['to stop it', stopText(found.daemon)]] : []),
    ...(found.daemon?.slots ? [['slots', `${found.daemon.slots.used} in use, ${found.daemon.slots.free} free`]] : []),
    ...(found.runs ? [['runs', runsText(found.runs)]] : []),
    ...(found.triggers && found.triggers.all > 0 ? [['triggers', triggersText(found.triggers)]] : []),
    ...copiedRows(found),
    ...hubRows(found, paint),
    ['disk', `${sizeText(found.disk.free)} free, the database has ${sizeText(found.disk.database)}`],
  ]
  print(narrowed(rows))
  for (const problem of found.problems) print(line`${paint.yellow('!')} ${problem}`)
}

/** On a terminal without room for two columns, each name stands above what it names. */
function narrowed(rows: readonly (readonly Shown[])[]): Printable[] {
  const whole = table(rows)
  if (whole.every(({ width }) => width <= columns())) return whole
  return rows.flatMap(([name, text]) => [
    line`${name!}`,
    ...wrap(line`${text!}`, columns() - 2).map(each => line`  ${each}`),
  ])
}

function daemonText({ daemon }: HomeStatus, paint: Paint): Shown {
  if (!daemon) return line`${paint.dim('not running')}; to start it: ${commandLine('serve')}`
  const { command, pid, address, version } = daemon
  const what = command === 'serve' ? 'runs' : `\`${command}\` holds the home`
  const state = isStuck(daemon) ? 'does not answer' : paint.green(what)
  return joined(
    [line`${state}, process ${pid}`, ...(address ? [`at ${address}`] : []), ...(version ? [`version ${version}`] : [])],
    ', ',
  )
}

/** A command to paste. It ends as with Ctrl-C: what runs goes on at the next start. */
const stopText = ({ pid }: NonNullable<HomeStatus['daemon']>): Shown =>
  line`kill ${pid}; the next start continues what runs, and a service has to be stopped as one`

function copiedRows({ copied }: HomeStatus): Shown[][] {
  if (!copied) return []
  const { from, at } = copied
  return [['place', line`was copied or moved from ${from.folder} on ${from.host}, found ${new Date(at).toISOString()}`]]
}

function runsText(runs: NonNullable<HomeStatus['runs']>): string {
  const { running, queued, awaiting_input, interrupted, reviews } = runs

  const parts = [
    running > 0 && `${running} running`,
    queued > 0 && `${queued} queued`,
    awaiting_input > 0 && `${awaiting_input} waiting for a person`,
    interrupted > 0 && `${interrupted} interrupted`,
    reviews > 0 && `${reviews} to decide (${commandLine('reviews')})`,
  ].filter(Boolean)
  return parts.join(', ') || 'none at work'
}

function triggersText({ active, all, next }: NonNullable<HomeStatus['triggers']>): string {
  const when = next === null ? '' : `; next ${next.name} at ${next.local}`
  return `${active} of ${all} active${when}`
}

function hubRows({ hub, daemon, signed_in }: HomeStatus, paint: Paint): Shown[][] {
  const session = signed_in ? [['signed in', `at ${signed_in.hub}`]] : []
  if (!hub) return [['hub', paint.dim('none')], ...session]
  const { url, enrolled, realm, daemon_id, approved, clock_ahead_ms: ahead, unsent } = hub
  const link = linkText(hub, daemon)
  const as =
    daemon_id !== null ? `as daemon ${daemon_id}` : enrolled ? 'enrolled, not connected yet' : 'not connected yet'
  return [
    ['hub', line`${url}, ${link === LINKED ? paint.green(link) : link}`],
    ...session,
    ...(enrolled === null && realm === null
      ? []
      : [['realm', [realm?.slug ?? realm?.id, as, approved === false && 'not approved'].filter(Boolean).join(', ')]]),
    ...(ahead ? [['clock', `the hub is ${formatDuration(Math.abs(ahead))} ${ahead > 0 ? 'ahead' : 'behind'}`]] : []),
    ...(realm === null ? [] : [['to send', unsentText(unsent)]]),
  ]
}

function unsentText({ changes, lines, bytes, oldest_at, files }: HubStatus['unsent']): string {
  const age = (at: number | null) => (at === null ? '' : `, the oldest ${ageText(at)} old`)
  const parts = [
    changes > 0 && `${changes === 1 ? '1 change' : `${changes} changes`} (${sizeText(bytes)}${age(oldest_at)})`,
    lines > 0 && `${lines} log lines`,
    files.count > 0 &&
      `${files.count === 1 ? '1 file' : `${files.count} files`} (${sizeText(files.bytes)}${age(files.oldest_at)})`,
  ].filter(Boolean)
  return parts.join(', ') || 'nothing'
}
