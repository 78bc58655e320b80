// Commands that show triggers: the list, one of them, its slots and its firings.

import { createPaint, line } from '../../../text/printable.ts'
import { print, printJson } from '../../../text/terminal.ts'
import { GetTrigger, ListFirings, ListTriggers, PreviewTrigger } from '../../../wire/calls/triggers.ts'
import type { FiringReason, FiringState, TriggerKind } from '../../../wire/records/trigger-words.ts'
import { homeFolder } from '../../home/home.ts'
import { askAboutTriggers } from '../backend/trigger-answers.ts'
import { printHowMany, show } from '../kit/print.ts'
import { firingCells } from '../terminal/trigger-lines.ts'
import { previewLines, printUnserved, triggerLines, triggerRow } from './print.ts'

export interface Options {
  home?: string
  json?: boolean
}

interface PageOptions {
  limit?: number
  offset?: number
}

export async function listTriggers(
  kind: TriggerKind | undefined,
  { home: given, json, limit = 100, offset = 0 }: Options & PageOptions,
): Promise<void> {
  const home = homeFolder(given)
  const body = { limit, offset, ...(kind && { kind }) }
  const found = await askAboutTriggers(home, all => all.call(ListTriggers, body))
  show(json, found, paint => found.triggers.map(trigger => triggerRow(paint, trigger)))
  if (!json) printHowMany({ total: found.total, offset, shown: found.triggers.length })
  printUnserved(home)
}

export async function showTrigger(name: string, { home: given, json }: Options): Promise<void> {
  const home = homeFolder(given)
  const trigger = await askAboutTriggers(home, all => all.call(GetTrigger, { name }))
  if (json) printJson(trigger)
  else print(triggerLines(createPaint(process.stdout), trigger))
  printUnserved(home)
}

export async function previewTrigger(
  name: string,
  { home, json, limit = 5, after, until }: Options & { limit?: number; after?: number; until?: number },
): Promise<void> {
  const range = { limit, ...(after !== undefined && { after }), ...(until !== undefined && { until }) }
  const found = await askAboutTriggers(homeFolder(home), all => all.call(PreviewTrigger, { name, ...range }))
  if (json) printJson(found)
  else print(line`${found.words}`, previewLines(found))
}

export interface FiringOptions extends Options, PageOptions {
  state?: FiringState
  reason?: FiringReason
  since?: number
  until?: number
}

export async function listFirings(
  name: string,
  { home, json, state, reason, since, until, limit = 20, offset = 0 }: FiringOptions,
): Promise<void> {
  const filter = {
    ...(state && { state }),
    ...(reason && { reason }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  }
  const found = await askAboutTriggers(homeFolder(home), all =>
    all.call(ListFirings, { name, limit, offset, ...filter }),
  )
  show(json, found, paint =>
    found.firings.map(firing => [paint.dim(firing.id), firing.occasion, ...firingCells(paint, firing)]),
  )
}
