// `triggers` of a team: what may start it. They start nothing until somebody enables one by its name, and are checked
// like everything else in the file.

import { parseDuration } from '../../duration.ts'
import { CadreError, type Detail } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { matches } from '../../schema/schema.ts'
import type * as Hooks from '../../triggers/hook/spec.ts'
import type * as Schedules from '../../triggers/schedule/spec.ts'
import type * as Watches from '../../triggers/watch/spec.ts'
import { OCCASION_VARIABLES, TRIGGER_KINDS, type TriggerKind } from '../../wire/records/trigger-words.ts'
import type { DeclaredTrigger, Field } from '../model/model.ts'
import { field, itemsOf, type Mapping, type Node, toJson } from '../yaml/yaml.ts'
import type { Compilation } from './compilation.ts'
import { inputProblems, occasionRule } from './occasion.ts'
import { TriggerSchema } from './team-schema.ts'

const KINDS = TRIGGER_KINDS.filter(kind => kind in TriggerSchema.properties)

/** `declared`: the inputs of the team. */
export function compileTriggers(
  compilation: Compilation,
  list: Node | undefined,
  declared: readonly Field[],
): DeclaredTrigger[] {
  const names = new Set<string>()
  return itemsOf(list).flatMap(node => {
    const written = toJson(node)
    // The schema has said what is wrong.
    if (node.kind !== 'map' || !matches(TriggerSchema, written)) return []
    const { name } = written
    if (names.has(name)) compilation.source.report(field(node, 'name')!, `another trigger is named \`${name}\``)
    names.add(name)
    if (name === 'last')
      compilation.source.report(field(node, 'name')!, '`last` means the newest run: choose another name')
    const trigger = declaredTrigger(compilation, node, written as JsonObject & { name: string })
    if (trigger && compilation.agents) {
      for (const { path, message } of problemsOf(trigger, declared)) {
        compilation.source.report(placeOf(node, trigger.kind, path), message)
      }
    }
    return trigger ? [trigger] : []
  })
}

function declaredTrigger(
  { source }: Compilation,
  node: Mapping,
  { name, ...written }: JsonObject & { name: string },
): DeclaredTrigger | null {
  const [kind, second] = KINDS.filter(kind => written[kind] !== undefined)
  if (kind === undefined || second !== undefined) {
    source.report(node, `expected one of ${KINDS.slice(0, -1).join(', ')} and ${KINDS.at(-1)}`)
    return null
  }
  const { [kind]: own, ...common } = written
  return { name, kind, fields: { ...common, ...(own as JsonObject) } }
}

/** What the schema does not see. Paths are those of a flat body, as `triggers/add` takes it. */
function problemsOf({ kind, fields }: DeclaredTrigger, declared: readonly Field[]): Detail[] {
  const { when, inputs, at_most, overlap = kind === 'schedule' ? 'skip' : 'allow' } = fields
  const problems = [...ownProblems(kind, { ...fields, overlap })]
  const per = (at_most as { per?: string } | null | undefined)?.per
  if (per !== undefined && parseDuration(per) === null) {
    problems.push({ path: '/at_most/per', message: 'must be a duration such as 10m, 1h or 1d' })
  }
  try {
    const rule = {
      ...(typeof when === 'string' && { when }),
      ...(inputs !== undefined && { inputs: inputs as JsonObject }),
    }
    problems.push(...inputProblems(declared, occasionRule(rule, OCCASION_VARIABLES[kind])))
  } catch (error) {
    if (!(error instanceof CadreError) || !error.details) throw error
    problems.push(...error.details)
  }
  return problems
}

/** Loaded where a team has triggers of the kind: calendars take longer to load than most teams. */
function ownProblems(kind: TriggerKind, fields: JsonObject): readonly Detail[] {
  if (kind === 'schedule') {
    const { checkSchedule } = require('../../triggers/schedule/spec.ts') as typeof Schedules
    return checkSchedule(fields, { tz: 'UTC', now: Date.now(), overlap: String(fields.overlap) }).problems ?? []
  }
  const { when: _, inputs: __, overlap: ___, queue_max, at_most, workspace, environment, run_name, ...own } = fields
  if (kind === 'hook') {
    const { checkHook } = require('../../triggers/hook/spec.ts') as typeof Hooks
    return checkHook(own, occasionRule).problems
  }
  if (kind === 'watch') {
    const { checkWatch } = require('../../triggers/watch/spec.ts') as typeof Watches
    return checkWatch(own).problems ?? []
  }
  return []
}

/** The place of a field of a flat body: beside the kind, or below it. */
function placeOf(node: Mapping, kind: TriggerKind, path: string): Node {
  const names = path.split('/').slice(1)
  const below = (from: Node | undefined) =>
    names.reduce<Node | undefined>((at, name) => (at && field(at, name)) ?? at, from)
  const [first] = names
  return (first !== undefined && field(node, first) ? below(node) : below(field(node, kind))) ?? node
}
