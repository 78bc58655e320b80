// What `teams/history` says of each run of a team: what differs from the last run before it that completed.

import { canonicalJson, type Json, type JsonObject } from '../json.ts'
import { nullable } from '../schema/schema.ts'
import { Type } from '../schema/type.ts'
import { AnyText, WrittenId } from './parts.ts'

export const UPTO = Type.Optional(
  Type.Unsafe<string>({ ...WrittenId, description: 'The id of a run: only this run and those before it.' }),
)

export const CHANGED = {
  changed: Type.Array(AnyText, {
    description:
      'What differs from the last completed run before it: `version`, `team` (other text of the same version, which only a daemon knows), `inputs.NAME`, `inputs` (too large to say which), `environment`, `workspace`, `agents` (those of its phases), `daemon`.',
  }),
  compared_to: nullable(AnyText, { description: 'The id of that completed run. Null when there is none.' }),
}

/** What is compared of two runs. */
export interface Compared {
  /** Runs of one group are compared with each other: those of a team, and of a realm. */
  group: string
  run_id: string
  state: string
  version: string
  /** The text of its team, or what stands for it. */
  text?: string
  /** Null: too large. */
  inputs: JsonObject | null
  environment: string | null
  workspace: string | null
  daemon?: string | null
}

/** What has to be looked up of two runs. */
export interface Looked<R> {
  /** Asked where the inputs of either are too large. */
  haveSameInputs(run: R, before: R): boolean | Promise<boolean>
  haveSameAgents(run: R, before: R): boolean | Promise<boolean>
}

/** The names of what differs. */
async function differences<R extends Compared>(run: R, before: R, looked: Looked<R>): Promise<string[]> {
  const names: string[] = []
  if (run.version !== before.version) names.push('version')
  else if (run.text !== before.text) names.push('team')
  if (run.inputs && before.inputs) names.push(...differingKeys(run.inputs, before.inputs).map(key => `inputs.${key}`))
  else if (!(await looked.haveSameInputs(run, before))) names.push('inputs')
  if (run.environment !== before.environment) names.push('environment')
  // What only its daemon knows: nothing of it differs while none has taken the run.
  if (run.daemon === null) return names
  if (run.workspace !== before.workspace) names.push('workspace')
  if (!(await looked.haveSameAgents(run, before))) names.push('agents')
  if (run.daemon !== before.daemon) names.push('daemon')
  return names
}

function differingKeys(one: JsonObject, other: JsonObject): string[] {
  const text = (value: Json | undefined) => (value === undefined ? undefined : canonicalJson(value))
  const keys = new Set([...Object.keys(other), ...Object.keys(one)])
  return [...keys].filter(key => text(one[key]) !== text(other[key])).sort()
}

/**
 * What `CHANGED` says of each of `runs`, which are some of a list without gaps, newest first. `completedBefore` finds the
 * last completed run that is older than the last run of a group in the list.
 */
export async function changesOf<R extends Compared>(
  runs: readonly R[],
  completedBefore: (last: R) => R | null | Promise<R | null>,
  looked: Looked<R>,
): Promise<{ changed: string[]; compared_to: string | null }[]> {
  const oldest = new Map(runs.map(run => [run.group, run]))
  const good = new Map<string, R | null>()
  for (const [group, run] of oldest) good.set(group, await completedBefore(run))
  const changes = []
  for (const run of runs.toReversed()) {
    const before = good.get(run.group) ?? null
    const changed = before ? await differences(run, before, looked) : []
    changes.push({ changed, compared_to: before?.run_id ?? null })
    if (run.state === 'completed') good.set(run.group, run)
  }
  return changes.reverse()
}
