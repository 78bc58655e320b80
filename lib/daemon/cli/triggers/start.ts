// Commands that start a run of a trigger: now, or of an occasion that passed.

import { CadreError } from '../../../error.ts'
import { createLog } from '../../../log/log.ts'
import { commandLine } from '../../../program/called-as.ts'
import { createPaint, line } from '../../../text/printable.ts'
import { print, printJson, printMessage } from '../../../text/terminal.ts'
import { BackfillTrigger, GetTrigger, RefireTrigger, RunTrigger } from '../../../wire/calls/triggers.ts'
import type { FiringRecord } from '../../../wire/records/triggers.ts'
import { homeBackend } from '../backend/home-backend.ts'
import type { Callee } from '../backend/home-client.ts'
import { openRunner } from '../backend/home-runner.ts'
import { type TriggerPlace, triggerPlaceOf } from '../backend/trigger-place.ts'
import { EXIT } from '../kit/exit.ts'
import { watch } from '../runs/watch.ts'
import { firingIdOf } from '../runs/why-trigger.ts'
import { table } from '../terminal/table.ts'
import { firingCells, slotCells } from '../terminal/trigger-lines.ts'
import type { Options } from './list.ts'
import { printUnserved } from './print.ts'

export const runTrigger = (name: string, { force, ...options }: Options & { force?: boolean }): Promise<number> =>
  start(options, all => all.call(RunTrigger, { name, ...(force && { force }) }))

export async function refireFiring(
  typed: string,
  { again, ...options }: Options & { again?: boolean },
): Promise<number> {
  const { ask } = await triggerPlaceOf(options)
  const firing_id = await firingIdOf(ask, typed)
  if (firing_id === null) throw new CadreError('not_found', `no firing begins with ${typed}`)
  return start(options, all => all.call(RefireTrigger, { firing_id, ...(again && { again }) }))
}

interface BackfillOptions extends Options {
  from?: number
  to?: number
  most?: number
  dryRun?: boolean
  yes?: boolean
}

/** Prints the slots that start, or would start. */
export async function backfillTrigger(
  name: string,
  { json, from, to = Date.now(), most, dryRun, yes, ...where }: BackfillOptions,
): Promise<void> {
  if (from === undefined) throw new CadreError('invalid_request', 'say from when: --from 7d, or --from 2026-11-01')
  const place = await triggerPlaceOf(where)
  const more = { ...(most !== undefined && { most }), ...(dryRun && { dry_run: true }), ...(yes && { yes }) }
  const [found, { created_at }] = await place.change(all =>
    Promise.all([all.call(BackfillTrigger, { name, from, to, ...more }), all.call(GetTrigger, { name })]),
  )
  const early = found.slots.filter(({ at }) => at < created_at).length
  if (json) printJson(found)
  else {
    const { slots, left } = found
    print(table(slots.map(slotCells)))
    const others = left === 0 ? '' : `, and ${left} more are left`
    printMessage(
      line`${slots.length} ${slots.length === 1 ? 'slot' : 'slots'} ${dryRun ? 'would start' : 'start'}${others}`,
    )
  }
  if (early > 0) printMessage(line`${early} of them ${early === 1 ? 'was' : 'were'} due before ${name} was added`)
  if (!dryRun) printUnserved(place)
}

/**
 * The run goes on in the daemon; without one it is executed here and followed. A firing that starts nothing is an answer
 * that a caller has to see, so the exit code is that of a refusal.
 */
async function start({ json, ...where }: Options, work: (all: Callee) => Promise<FiringRecord>): Promise<number> {
  const place = await triggerPlaceOf(where)
  if (place.hub) return startAt(place, await place.change(work), json)
  const { home } = place
  const first = ({ callee }: { callee: Callee }) => work(callee)
  const { runner, result: firing } = await openRunner(home, 'triggers', createLog({ level: 'warn' }), first)
  if (json) printJson(firing)
  const { run_id } = firing
  if (run_id !== null) {
    if (runner.host) return watch(runner, run_id, { backend: homeBackend(home), json: false })
    if (!json) print(line`${run_id}`)
    printMessage(line`the run goes on in the daemon: ${commandLine('watch', run_id)}`)
    return EXIT.done
  }
  await runner.host?.close()
  return startedNothing(place, firing, json)
}

/** A daemon of the realm executes the run. */
function startAt(place: TriggerPlace, firing: FiringRecord, json = false): number {
  const { run_id } = firing
  if (json) printJson(firing)
  if (run_id === null) return startedNothing(place, firing, json)
  if (!json) print(line`${run_id}`)
  printMessage(line`a daemon of the realm takes the run: ${commandLine('watch', run_id, '--hub')}`)
  return EXIT.done
}

function startedNothing(place: TriggerPlace, firing: FiringRecord, json = false): number {
  if (!json) print(table([firingCells(createPaint(process.stdout), firing)]))
  if (firing.state !== 'waiting') return EXIT.usage
  printUnserved(place)
  return EXIT.done
}
