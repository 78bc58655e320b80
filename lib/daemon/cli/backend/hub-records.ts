// Records of the hub in the form in which the daemon has them. What only the hub knows (realm, daemon, job) is left out.

import type { Static } from 'typebox'
import { isObject, type Json } from '../../../json.ts'
import { matches } from '../../../schema/schema.ts'
import { Type } from '../../../schema/type.ts'
import type { HubReview } from '../../../wire/calls/hub-reviews.ts'
import type { HubPhase, HubRun } from '../../../wire/calls/hub-runs.ts'
import type { GetRun } from '../../../wire/calls/runs.ts'
import { Field } from '../../../wire/records/forms.ts'
import { DeliveryRecord, FileRecord, RunError, type ToldRun } from '../../../wire/records/run-records.ts'

export function toldRun({ version, error, outputs, ...run }: HubRun): ToldRun {
  const { realm_id: _, daemon_id: __, job_id: ___, created_at: ____, ...told } = run
  return { ...told, version: version ?? '', error: errorOf(error), outputs: isObject(outputs) ? outputs : null }
}

export const errorOf = (error: Json): RunError | null => (matches(RunError, error) ? error : null)

export function deliveriesOf(deliveries: readonly Json[]): Static<typeof GetRun.data>['deliveries'] {
  return deliveries.filter(each => matches(DeliveryRecord, each))
}

/** What the records and the events of a phase have in common. */
export function toldPhase<P extends Pick<HubPhase, 'error' | 'files'>>(phase: P) {
  const files = phase.files.filter(file => matches(FileRecord, file))
  // What a phase waits for is known only where it is executed.
  return { ...phase, error: errorOf(phase.error), files, waiting: null }
}

/** The form of a gate, with the kinds of fields that this program knows. */
const Form = Type.Array(Field)

export function toldReview({ realm_id: _, inputs, reviewers: __, entries, prompt, reason, ...review }: HubReview) {
  return {
    ...review,
    entries: entries.map(entry => (typeof entry === 'string' ? entry : JSON.stringify(entry))),
    prompt: prompt ?? '',
    reason: reason ?? '',
    form: matches(Form, inputs) ? inputs : [],
  }
}
