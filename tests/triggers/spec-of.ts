// The schedule of fields that are right.

import { checkSchedule, type ScheduleFields, type ScheduleSpec } from '../../lib/triggers/schedule/spec.ts'

export const AROUND = { tz: 'UTC', now: Date.UTC(2026, 10, 23, 6, 0, 30), overlap: 'allow' }

export function specOf(fields: ScheduleFields): ScheduleSpec {
  const { spec, problems } = checkSchedule(fields, AROUND)
  if (spec === undefined) throw new Error(JSON.stringify(problems))
  return spec
}
