// The labels of a daemon, by the setting `labels`: a mapping of names to values, or a list in which a name alone has the
// value `yes`. A run that requires a label goes only to a daemon that has it. Pure.

import type { Json } from '../json.ts'
import { matches } from '../schema/schema.ts'
import { labelsOf, OWN_LABELS, WrittenLabels } from '../wire/needs.ts'

/** The problem with a value of `labels`; null if there is none. */
export function labelsProblem(value: Json): string | null {
  if (!matches(WrittenLabels, value)) {
    return 'must be a mapping of names to values, such as `{gpu: "yes"}`, or a list such as [gpu, region=eu]'
  }
  const own = Object.keys(labelsOf(value)).find(name => OWN_LABELS.some(known => known === name))
  return own === undefined ? null : `${own} is a label that every daemon has by itself; choose another name`
}

/** The labels that are set. A value with a problem, which the start names, gives none. */
export function labelsIn(value: Json | undefined): Record<string, string> {
  return value !== undefined && matches(WrittenLabels, value) && labelsProblem(value) === null ? labelsOf(value) : {}
}
