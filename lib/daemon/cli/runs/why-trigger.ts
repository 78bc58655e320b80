// `why NAME` and `why FIRING`: why a trigger has started nothing, the newest reason first.

import { CadreError } from '../../../error.ts'
import { commandLine } from '../../../program/called-as.ts'
import { createPaint, line, type Printable } from '../../../text/printable.ts'
import { print, printJson } from '../../../text/terminal.ts'
import { GetTrigger, ListFirings } from '../../../wire/calls/triggers.ts'
import type { FiringRecord, TriggerRecord } from '../../../wire/records/triggers.ts'
import { lostTells } from '../backend/account-status.ts'
import type { Callee } from '../backend/home-client.ts'
import { type PlaceOptions, type TriggerPlace, triggerPlaceOf } from '../backend/trigger-place.ts'
import type { Ask } from '../backend/typed-ids.ts'
import { clock, table } from '../terminal/table.ts'
import { firingCells, whyNot } from '../terminal/trigger-lines.ts'

const SHOWN = 10
const ID = /^[0-9a-f]{6}[0-9a-f-]*$/
const NAMED = 5

interface Options extends PlaceOptions {
  json?: boolean
}

/** Explains the trigger or firing that `typed` names. False when there is none. */
export async function whyTrigger(typed: string, { json, ...where }: Options): Promise<boolean> {
  const place = await triggerPlaceOf(where)
  const found = await place.ask(all => lookFor(all, typed))
  if (!found) return false
  const { trigger, firings } = found
  if (json) printJson(trigger ?? firings[0])
  else if (trigger) explainTrigger(trigger, firings, place)
  else explainFiring(firings[0]!, place)
  return true
}

interface Found {
  /** Null when a firing is meant. */
  trigger: TriggerRecord | null
  firings: FiringRecord[]
}

async function lookFor(all: Callee, typed: string): Promise<Found | null> {
  const missing = (error: unknown) => {
    if (error instanceof CadreError && ['not_found', 'invalid_request'].includes(error.code)) return null
    throw error
  }
  const trigger = await all.call(GetTrigger, { name: typed }).catch(missing)
  if (trigger) {
    const { firings } = await all.call(ListFirings, { trigger_id: trigger.id, limit: SHOWN })
    return { trigger, firings }
  }
  const firing = await firingBeginning(all, typed)
  return firing && { trigger: null, firings: [firing] }
}

/** The id of a firing that begins so; null when there is none. Throws `invalid_request` when there are several. */
export async function firingIdOf(ask: Ask, typed: string): Promise<string | null> {
  const firing = await ask(all => firingBeginning(all, typed))
  return firing?.id ?? null
}

async function firingBeginning(all: Callee, typed: string): Promise<FiringRecord | null> {
  const begins = typed.toLowerCase()
  if (!ID.test(begins)) return null
  const { firings } = await all.call(ListFirings, { begins, limit: NAMED + 1 }).catch(error => {
    if (error instanceof CadreError && error.code === 'not_found') return { firings: [] }
    throw error
  })
  const [first, ...others] = firings
  if (!first || others.length === 0) return first ?? null
  const ids = firings.slice(0, NAMED).map(({ id, name }) => `${id} (${name})`)
  const more = firings.length > NAMED ? ', and more' : ''
  throw new CadreError('invalid_request', `several firings begin with ${typed}: ${ids.join(', ')}${more}`)
}

function explainTrigger(trigger: TriggerRecord, firings: readonly FiringRecord[], place: TriggerPlace): void {
  const paint = createPaint(process.stdout)
  const { name, kind, next, words = '' } = trigger
  const now = obstacles(trigger, place)
  const whenNext = kind !== 'schedule' ? [] : [next[0] ? `it is due next at ${next[0].local}` : 'it is not due again']
  const rows = firings.map(firing => firingCells(paint, firing))
  print(
    now.map(({ text }) => line`${text}`),
    firings.length === 0
      ? line`${[`${name} has had no occasion yet: ${words}`, ...whenNext].join('; ')}`
      : line`${[`what ${name} did, the newest first`, ...whenNext].join('; ')}:`,
    table(rows).map(row => line`  ${row}`),
    (place.hub ? [] : lostTells(place.home, trigger.id)).map(text => line`${text}`),
    [
      ...now.map(({ command }) => command),
      ...(firings.length < SHOWN ? [] : [['triggers', 'firings', name, '--state', 'skipped']]),
      ...nextOf(firings[0]),
    ].map(args => paint.dim(`  ${commandFor(place, args)}`)),
  )
}

/** What keeps it from starting anything now. */
function obstacles({ name, enabled, paused, problem }: TriggerRecord, place: TriggerPlace) {
  const found: { text: string; command: string[] }[] = []
  if (!enabled) {
    found.push({ text: `${name} is disabled: it looks at no occasion`, command: ['triggers', 'enable', name] })
  }
  if (paused) {
    const { since, by, reason } = paused
    const text = `${name} is paused since ${clock(since)} by ${by}${reason === null ? '' : `: ${reason}`}`
    found.push({ text, command: ['triggers', 'resume', name] })
  }
  if (problem) {
    const text = `${name} is broken since ${clock(problem.since)}: ${problem.text}`
    found.push({ text, command: ['triggers', 'show', name] })
  }
  if (place.isIdle()) found.push({ text: 'no daemon runs, so no trigger starts anything', command: ['serve'] })
  return found
}

function explainFiring(firing: FiringRecord, place: TriggerPlace): void {
  const paint = createPaint(process.stdout)
  const { name, occasion, state, run_id, seen_at } = firing
  const what: Printable =
    run_id !== null
      ? line`${occasion} of ${name} started run ${run_id}`
      : line`${occasion} of ${name} ${state === 'waiting' ? 'waits' : `was ${state}`}, ${whyNot(firing)}`
  print(what, line`it was looked at ${clock(seen_at)}`)
  print(nextOf(firing).map(args => paint.dim(`  ${commandFor(place, args)}`)))
}

/** A run of a realm is one of its hub. */
const commandFor = (place: TriggerPlace, args: readonly string[]): string =>
  place.hub && args[0] === 'why' ? commandLine(...args, '--hub') : place.command(...args)

function nextOf(firing: FiringRecord | undefined): string[][] {
  if (!firing) return []
  if (firing.run_id !== null) return [['why', firing.run_id]]
  return firing.state === 'waiting' ? [] : [['triggers', 'refire', firing.id]]
}
