// Commands that show triggers: the list, one of them, its slots and its firings.

import { readFile } from 'node:fs/promises'
import { CadreError } from '../../../error.ts'
import { createPaint, line } from '../../../text/printable.ts'
import { print, printJson } from '../../../text/terminal.ts'
import { GetTrigger, ListFirings, ListTriggers, PreviewTrigger } from '../../../wire/calls/triggers.ts'
import type { FiringReason, FiringState, TriggerKind } from '../../../wire/records/trigger-words.ts'
import { type PlaceOptions, triggerPlaceOf } from '../backend/trigger-place.ts'
import { printHowMany, show } from '../kit/print.ts'
import { firingCells } from '../terminal/trigger-lines.ts'
import {
  deliveryLines,
  fileLines,
  outcomeLines,
  previewLines,
  printUnserved,
  triggerLines,
  triggerRow,
} from './print.ts'

export interface Options extends PlaceOptions {
  json?: boolean
}

interface PageOptions {
  limit?: number
  offset?: number
}

export async function listTriggers(
  kind: TriggerKind | undefined,
  { json, limit = 100, offset = 0, ...where }: Options & PageOptions,
): Promise<void> {
  const place = await triggerPlaceOf(where)
  const body = { limit, offset, ...(kind && { kind }) }
  const found = await place.ask(all => all.call(ListTriggers, body))
  show(json, found, paint => found.triggers.map(trigger => triggerRow(paint, trigger)))
  if (!json) printHowMany({ total: found.total, offset, shown: found.triggers.length })
  printUnserved(place)
}

export async function showTrigger(name: string, { json, ...where }: Options): Promise<void> {
  const place = await triggerPlaceOf(where)
  const trigger = await place.ask(all => all.call(GetTrigger, { name }))
  if (json) printJson(trigger)
  else print(triggerLines(createPaint(process.stdout), trigger))
  printUnserved(place)
}

export interface PreviewOptions extends Options {
  limit?: number
  after?: number
  until?: number
  body?: string
  header?: string[]
}

export async function previewTrigger(
  name: string,
  { json, limit = 5, after, until, body, header, ...where }: PreviewOptions,
): Promise<void> {
  const delivery = {
    ...(body !== undefined && { body: await bodyIn(body) }),
    ...(header && { headers: headersIn(header) }),
  }
  const range = { ...delivery, limit, ...(after !== undefined && { after }), ...(until !== undefined && { until }) }
  const { ask } = await triggerPlaceOf(where)
  const found = await ask(all => all.call(PreviewTrigger, { name, ...range }))
  if (json) printJson(found)
  else
    print(line`${found.words}`, previewLines(found), fileLines(found), outcomeLines(createPaint(process.stdout), found))
}

/** What a file says, as JSON where it is. `-` is stdin. */
async function bodyIn(file: string): Promise<unknown> {
  const text = file === '-' ? await Bun.stdin.text() : await readFile(file, 'utf8')
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function headersIn(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map(text => {
      const [, name, value] = /^([^:\s]+):\s*(.*)$/.exec(text) ?? []
      if (name !== undefined) return [name.toLowerCase(), value!]
      throw new CadreError('invalid_request', `--header ${text}: expected NAME: VALUE`)
    }),
  )
}

export interface FiringOptions extends Options, PageOptions {
  state?: FiringState
  reason?: FiringReason
  since?: number
  until?: number
  body?: boolean
}

export async function listFirings(
  name: string,
  { json, state, reason, since, until, body, limit = 20, offset = 0, ...where }: FiringOptions,
): Promise<void> {
  const filter = {
    ...(state && { state }),
    ...(reason && { reason }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
    ...(body && { with_body: true }),
  }
  const { ask, change } = await triggerPlaceOf(where)
  // Bodies are sealed, and their secrets are known to a process that holds the home.
  const asked = body ? change : ask
  const found = await asked(all => all.call(ListFirings, { name, limit, offset, ...filter }))
  if (json || !body) {
    show(json, found, paint =>
      found.firings.map(firing => [paint.dim(firing.id), firing.occasion, ...firingCells(paint, firing)]),
    )
    return
  }
  const paint = createPaint(process.stdout)
  for (const firing of found.firings) print(deliveryLines(paint, firing))
}
