// What people see of triggers and firings, on a home and on a hub.

import { CadreError } from '../error.ts'
import type { JsonObject } from '../json.ts'
import type { ScheduleSpec } from '../triggers/schedule/spec.ts'
import type { FiringRecord, TriggerRecord } from '../wire/records/triggers.ts'
import type { TriggerFields } from './check-trigger.ts'
import type { Sent } from './hook-firing.ts'
import { kindOf } from './kinds.ts'
import { refusal } from './refusal.ts'
import { schedule } from './schedule-kind.ts'
import type { Firing, Trigger } from './trigger.ts'
import { filesIn } from './watch-kind.ts'

/** How many firings a record of a trigger has. */
export const SHOWN = 5

/** `last`: the newest firings. */
export function triggerRecord(
  trigger: Trigger,
  last: readonly Omit<Firing, 'variables'>[],
  now: number,
): TriggerRecord {
  const { id, name, kind, revision, source, enabled, paused, problem, created_at, created_by } = trigger
  const { own: _, ...fields } = trigger.spec
  return {
    ...{ id, name, kind, revision, source: sourceOf(source), enabled, paused, problem, created_at, created_by },
    ...fields,
    ...{ state: stateOf(trigger), next: [] },
    ...kindOf(trigger).shown(trigger, now),
    // Nothing starts before that is mended.
    ...(problem && { next: [] }),
    // Lists of triggers would be long with all their files.
    last: last.map(firing => firingRecord({ ...firing, variables: {} }, name)),
  }
}

export const firingRecord = (
  { started_at: _, end_id: __, variables, run_id, manual, deliveries = null, ...firing }: Firing,
  name: string,
): FiringRecord => ({
  ...firing,
  name,
  manual: manual && { by: manual.by },
  run_id,
  run_ids: run_id === null ? [] : [run_id],
  deliveries,
  ...(variables.files !== undefined && { files: filesIn(variables) }),
})

/** The same with what a hook has stored of the delivery. `sent`: null when that is not kept. */
export function withDelivery(
  record: FiringRecord,
  { variables }: Pick<Firing, 'variables'>,
  sent: Sent | null,
  mask: (value: JsonObject) => unknown,
): FiringRecord {
  const { headers } = variables
  if (record.deliveries === null || headers === undefined) return record
  const { query = {}, body } = sent ?? {}
  const delivery = { headers: headers as JsonObject, query, body: body ? Buffer.from(body).toString() : null }
  return { ...record, delivery: mask(delivery) as typeof delivery }
}

function sourceOf(source: Trigger['source']): TriggerRecord['source'] {
  if (source === 'manual') return source
  const { team, version, name } = source
  return { team, version, name }
}

function stateOf({ enabled, paused, problem }: Trigger): TriggerRecord['state'] {
  if (!enabled) return 'disabled'
  return paused ? 'paused' : problem ? 'broken' : 'active'
}

/** The schedule of a body, for a preview. `tz`: the zone where none is written. Throws `invalid_request`. */
export function scheduleOf(
  fields: Omit<TriggerFields, 'team'>,
  { tz, now }: { tz: string; now: number },
): ScheduleSpec {
  const { own, problems } = schedule.check(fields, {
    tz,
    now,
    isNew: true,
    overlap: fields.overlap ?? schedule.overlap,
  })
  if (own) return own
  throw refusal(problems)
}

/** The schedule of a trigger, for a preview. Throws `invalid_request` for other kinds. */
export function scheduleIn({ kind, name, spec }: Pick<Trigger, 'kind' | 'name' | 'spec'>): ScheduleSpec {
  if (kind === 'schedule') return spec.own as ScheduleSpec
  throw new CadreError('invalid_request', `trigger ${name} is a ${kind}: nobody knows in advance when it starts a run`)
}

/** By its id, or by its name. */
export interface Which {
  trigger_id?: string | undefined
  name?: string | undefined
}

/** Which trigger a body names. Throws `invalid_request` unless it is one of the two. */
export function named<B extends Which>(body: B): B {
  if ((body.trigger_id === undefined) !== (body.name === undefined)) return body
  throw new CadreError('invalid_request', 'expected either `trigger_id` or `name`', {
    details: [{ path: '/trigger_id', message: 'set this, or `name`' }],
  })
}
