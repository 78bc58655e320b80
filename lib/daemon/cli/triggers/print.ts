// What the commands of triggers print of one trigger, and that no trigger starts anything where no daemon runs.

import { isAbsolute } from 'node:path'
import { commandLine } from '../../../program/called-as.ts'
import { sizeText } from '../../../size.ts'
import { createPaint, joined, line, nothing, type Paint, type Printable, type Shown } from '../../../text/printable.ts'
import { print, printJson, printMessage } from '../../../text/terminal.ts'
import { SENDERS } from '../../../triggers/hook/senders.ts'
import type { FiringRecord, PreviewRecord, RealmTriggerRecord, TriggerRecord } from '../../../wire/records/triggers.ts'
import type { TriggerPlace } from '../backend/trigger-place.ts'
import { clock, table } from '../terminal/table.ts'
import { firingCells, firingWord, slotCells, triggerWord, whyNot } from '../terminal/trigger-lines.ts'

/** Says so where no daemon looks at triggers. */
export function printUnserved(place: TriggerPlace): void {
  if (!place.isIdle()) return
  printMessage(line`no daemon runs, so no trigger starts anything`)
  const { dim } = createPaint(process.stderr)
  printMessage(dim(`  ${commandLine('serve')}     # in this terminal`))
  printMessage(dim(`  ${commandLine('service', 'install')}     # with each of your sessions`))
}

/** Says so where a run that fails in the night would be noticed by nobody. */
export function printUntold(): void {
  printMessage(line`nobody is told when a run fails, unless the team tells people itself`)
  const tell = commandLine('settings', 'set', 'notify.on_fail', '["chat:ops"]')
  printMessage(createPaint(process.stderr).dim(`  ${tell}     # a channel of the agent chat or email`))
}

/** After a change: what it is now, and when it starts something. `isKnown`: what it says was printed before. */
export function printTrigger(
  trigger: TriggerRecord,
  { json, place, isKnown }: { json?: boolean | undefined; place: TriggerPlace; isKnown?: boolean },
): void {
  if (json) printJson(trigger)
  else {
    const paint = createPaint(process.stdout)
    print(
      line`${paint.bold(trigger.name)}  ${triggerWord(paint, trigger.state)}  ${trigger.words ?? ''}`,
      previewLines({ slots: trigger.next, notes: isKnown ? [] : trigger.notes }),
      isKnown ? [] : hookLines(trigger, place),
    )
  }
  for (const text of trigger.warnings ?? [])
    printMessage(line`${createPaint(process.stderr).yellow('warning')}  ${text}`)
  printUnserved(place)
}

/** Where the sender of a hook posts to, and what to do there. */
function hookLines({ url, scheme }: TriggerRecord, { hub }: TriggerPlace): Printable[] {
  if (url === undefined || scheme === undefined) return []
  // A hub that does not know its public address says the path alone.
  return [line`url   ${hub && url.startsWith('/') ? hub.url : ''}${url}`, line`then  ${SENDERS[scheme].todo}`]
}

/** How a sender outside reaches a hook that listens on this machine alone. */
export function printHowReached({ kind }: TriggerRecord, { hub }: TriggerPlace): void {
  if (kind !== 'hook' || hub) return
  const tunnel = `a tunnel that ends here, with CADRE_HOOK_HOSTS=its.host.name ${commandLine('serve')}`
  printMessage(line`a sender outside this machine needs ${tunnel}; or add the hook in a realm of a hub: --realm`)
}

/** Which files a watch would report now. */
export function fileLines({ files, total = 0 }: PreviewRecord): Printable[] {
  if (!files) return []
  const more = total - files.length
  return [
    ...table(files.map(({ path, bytes, mtime, what }) => [what, path, sizeText(bytes), clock(mtime)])).map(
      row => line`  ${row}`,
    ),
    ...(files.length === 0 ? [line`it would report no file now`] : more > 0 ? [line`and ${more} more`] : []),
  ]
}

/** What a hook would do with a delivery. */
export function outcomeLines(paint: Paint, { outcome }: PreviewRecord): Printable[] {
  if (!outcome) return []
  const { state, reason, detail, inputs } = outcome
  const why = [reason, detail].filter(Boolean).join(': ')
  return [
    line`${state === 'starts' ? paint.green('starts a run') : triggerWord(paint, state)}  ${why}`,
    ...table(Object.entries(inputs ?? {}).map(([name, value]) => [name, JSON.stringify(value)])).map(
      row => line`  ${row}`,
    ),
  ]
}

/** A firing of a hook with what came. */
export function deliveryLines(paint: Paint, firing: FiringRecord): Printable[] {
  const { id, occasion, delivery } = firing
  const headers = Object.entries(delivery?.headers ?? {}).map(
    ([name, value]) => line`  ${paint.dim(name)}: ${String(value)}`,
  )
  const body = delivery?.body ?? null
  return [
    joined([paint.dim(id), occasion, ...firingCells(paint, firing)], '  '),
    ...headers,
    ...(body === null ? [line`  ${paint.dim('its body is not kept')}`] : body.split('\n').map(text => line`  ${text}`)),
  ]
}

/** The next slots, and the days on which a change of clocks moves one. */
export function previewLines({
  slots,
  notes,
}: {
  slots: TriggerRecord['next']
  notes: TriggerRecord['notes']
}): Printable[] {
  const named = (name: string, rows: readonly (readonly Shown[])[]) =>
    table(rows.map((cells, at) => [at === 0 ? name : '', ...cells]))
  return [
    ...named('next', slots.map(slotCells)),
    ...named(
      'note',
      (notes ?? []).map(({ text }) => [text]),
    ),
  ]
}

/** Everything that is known of a trigger, for people. */
export function triggerLines(paint: Paint, trigger: TriggerRecord): Printable[] {
  const { name, kind, state, words = '', team, inputs, last, paused, problem, source } = trigger
  const section = (title: string, rows: readonly Printable[]) =>
    rows.length === 0 ? [] : [nothing, paint.bold(title), ...rows.map(row => line`  ${row}`)]
  return [
    line`${paint.bold(name)}  ${triggerWord(paint, state)}  ${words}`,
    ...table(
      Object.entries({
        kind,
        team,
        ...(problem && { problem: line`${paint.red(problem.text)}, since ${clock(problem.since)}` }),
        ...(paused && { paused: pausedText(paused) }),
        ...optionsOf(trigger),
        ...hookOf(paint, trigger),
        ...watchOf(trigger),
        made: `by ${trigger.created_by}, ${clock(trigger.created_at)}`,
        ...realmOptionsOf(trigger),
        revision: trigger.revision,
        ...(source !== 'manual' && { source: `${source.name} of ${source.team} ${source.version}` }),
        id: paint.dim(trigger.id),
      }),
    ).map(row => line`  ${row}`),
    ...section('inputs', table(Object.entries(inputs).map(([key, value]) => [key, JSON.stringify(value)]))),
    ...section('next', table(trigger.next.map(slotCells))),
    ...section(
      'notes',
      (trigger.notes ?? []).map(({ text }) => line`${text}`),
    ),
    ...section('last', table(last.map(firing => firingCells(paint, firing)))),
  ]
}

export const pausedText = ({ since, by, reason }: NonNullable<TriggerRecord['paused']>): string =>
  `since ${clock(since)} by ${by}${reason === null ? '' : `: ${reason}`}`

/** What only a trigger of a realm has. */
function realmOptionsOf(trigger: TriggerRecord | RealmTriggerRecord): Record<string, Shown> {
  if (!('owner' in trigger)) return {}
  const { owner, requires, priority, queue_timeout } = trigger
  return {
    owner: `${owner}, with whose rights its runs start`,
    ...(requires && { requires: JSON.stringify(requires) }),
    ...(priority !== 0 && { priority }),
    ...(queue_timeout !== null && { 'queue timeout': queue_timeout }),
  }
}

/** What people chose, by the names of the options. */
function optionsOf(trigger: TriggerRecord): Record<string, Shown> {
  const {
    when,
    overlap,
    queue_max,
    at_most,
    catch_up,
    window,
    max,
    late_after,
    jitter,
    workspace,
    environment,
    run_name,
    team,
  } = trigger
  const waits = overlap === 'queue' ? `, ${queue_max} may wait` : ''
  const caught = { none: `late_after ${late_after}`, last: `window ${window}`, all: `window ${window}, max ${max}` }
  const late = catch_up === undefined ? null : caught[catch_up as keyof typeof caught]
  return {
    ...(when !== null && { when }),
    overlap: overlap + waits,
    ...(late !== null && { 'catch-up': `${catch_up}, ${late}` }),
    ...(jitter !== undefined && { jitter }),
    ...(at_most && { 'at most': `${at_most.count} within ${at_most.per}` }),
    // The team of a trigger at a hub is a package, whose runs work where their daemon lets them.
    ...(workspace !== null ? { workspace } : isAbsolute(team) && { 'works in': team }),
    ...(environment && { environment }),
    ...(run_name !== null && { 'run name': run_name }),
  }
}

/** What only watches have. */
function watchOf(trigger: TriggerRecord): Record<string, Shown> {
  const { folder, match = [], ignore = [], settle, poll, batch, identity, claim } = trigger
  if (folder === undefined) return {}
  return {
    folder,
    match: match.join(', '),
    ...(ignore.length > 0 && { ignore: ignore.join(', ') }),
    looks: `every ${poll} and when something happens; a file rests ${settle}`,
    ...(typeof batch === 'string' && { batch }),
    ...(identity === 'sha256' && { identity: 'the content of a file' }),
    ...(claim && { claim: `files are moved to ${folder}/.cadre-claimed` }),
  }
}

/** What only hooks have. */
function hookOf(paint: Paint, { url, secrets, keep_body, keep_days }: TriggerRecord): Record<string, Shown> {
  if (url === undefined) return {}
  const shown = (secrets ?? []).map(({ id, created_at, expires_at }) =>
    joined(
      [paint.dim(id), `since ${clock(created_at)}`, ...(expires_at === null ? [] : [paint.yellow('fits no more')])],
      ' ',
    ),
  )
  return {
    url,
    secrets: joined(shown, ', '),
    keeps: `deliveries ${keep_days} days, ${keep_body === 0 ? 'no bodies' : `bodies ${keep_body} days`}`,
  }
}

/** One row of a list: the name, its state, when it is due, and the newest of what it did. */
export function triggerRow(paint: Paint, { name, state, words = '', next, last, problem }: TriggerRecord): Shown[] {
  const [newest] = last
  const did = newest
    ? joined([firingWord(paint, newest), clock(newest.at), newest.run_id ?? paint.dim(whyNot(newest))], ' ')
    : paint.dim('never')
  const due = next[0]?.local ?? '–'
  return [paint.bold(name), triggerWord(paint, state), words, due, problem ? paint.red(problem.text) : did]
}
