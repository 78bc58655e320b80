// What a hook would do with a delivery, for people. Nothing is written.

import type { Field } from '../team/team.ts'
import type { Hook } from '../triggers/hook/fields.ts'
import type { PreviewRecord } from '../wire/records/triggers.ts'
import { hookOf, previewVariables, shownHook } from './hook-kind.ts'
import { judge } from './judge.ts'
import type { OwnFields } from './kind.ts'
import type { Trigger } from './trigger.ts'

interface Previewed {
  when?: string | null | undefined
  inputs?: Trigger['spec']['inputs'] | undefined
  team?: string | undefined
  /** Of a delivery, as a value. */
  body?: unknown
  headers?: Record<string, string> | undefined
}

/**
 * `known`: the hook that is asked about; null: one that is not added yet. `declaredBy`: the inputs of a team; null where
 * nobody knows them here.
 */
export async function previewOfHook(
  known: Pick<Trigger, 'spec'> | null,
  fields: Previewed,
  { declaredBy, now }: { declaredBy(team: string): Promise<readonly Field[] | null>; now: number },
): Promise<PreviewRecord> {
  const { spec, own } = known
    ? { spec: known.spec, own: known.spec.own as Hook }
    : { spec: { when: fields.when ?? null, inputs: fields.inputs ?? {} }, own: hookOf(fields as OwnFields) }
  const { words = '', notes = [] } = shownHook(own)
  const preview = { slots: [], notes, words }
  const { body, headers } = fields
  if (body === undefined && headers === undefined) return preview
  const team = known?.spec.team ?? fields.team
  const declared = team === undefined ? null : await declaredBy(team)
  const judged = judge({ kind: 'hook', spec }, previewVariables(own, body ?? {}, headers ?? {}, now), declared)
  const outcome =
    'inputs' in judged
      ? { state: 'starts' as const, reason: null, detail: null, inputs: judged.inputs }
      : { ...judged, state: judged.state === 'skipped' ? ('skipped' as const) : ('refused' as const), inputs: null }
  return { ...preview, outcome }
}
