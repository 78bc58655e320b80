// Reads dispatch.json: issues as data, for the agents that write them. A single issue may be given without the list
// around it.
//
//   { issues: [{ id?, key?, project, type, summary, description, labels, parent, fields }] }
//
// `id` names an issue within the file, and `key` names an existing issue. `parent` is a key, or the `id` of an earlier
// issue in the file.

import type { Static } from 'typebox'
import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { readText } from '../../agent/entry.ts'
import { isObject, type JsonObject } from '../../json.ts'
import { problems } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'

const MOST_BYTES = 16 * 1024 * 1024
const Text = Type.String({ minLength: 1 })
const closed = { additionalProperties: false }

const IssueDraft = Type.Object(
  {
    id: Type.Optional(Type.Union([Text, Type.Integer()])),
    key: Type.Optional(Text),
    project: Type.Optional(Text),
    type: Type.Optional(Text),
    summary: Type.Optional(Text),
    description: Type.Optional(Type.String()),
    labels: Type.Optional(Type.Array(Type.String({ pattern: '^\\S+$', 'x-expected': 'a word without spaces' }))),
    parent: Type.Optional(Type.Union([Text, Type.Integer()])),
    fields: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  },
  closed,
)
const Dispatch = Type.Object({ issues: Type.Array(IssueDraft, { minItems: 1, maxItems: 1_000 }) }, closed)

export type IssueDraft = Omit<Static<typeof IssueDraft>, 'fields'> & { fields?: JsonObject }

/**
 * The issues of `file`. `needs` returns the fields that an issue must have. Throws an AgentError `invalid_request` that
 * names every problem.
 */
async function readDispatch(
  context: AgentContext<unknown>,
  file: string,
  needs: (issue: IssueDraft) => readonly (keyof IssueDraft)[],
): Promise<IssueDraft[]> {
  const text = await readText(context, file, MOST_BYTES)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw refused(file, [`must be JSON: ${(cause as Error).message}`])
  }
  const dispatch = isObject(value) && !('issues' in value) ? { issues: [value] } : value
  const wrong = problems(Dispatch, dispatch).map(({ path, message }) => `${path || 'the file'} ${message}`)
  if (wrong.length > 0) throw refused(file, wrong)
  const { issues } = dispatch as { issues: IssueDraft[] }
  const places = new Map<string, number>()
  for (const [at, { id }] of issues.entries()) {
    if (id === undefined) continue
    if (places.has(`${id}`)) wrong.push(`/issues/${at}/id must be unique, but ${id} is used twice`)
    else places.set(`${id}`, at)
  }
  for (const [at, issue] of issues.entries()) {
    for (const key of needs(issue)) if (issue[key] === undefined) wrong.push(`/issues/${at}/${key} is required`)
    const parent = places.get(`${issue.parent}`)
    if (parent !== undefined && parent >= at)
      wrong.push(`/issues/${at}/parent must name an issue that precedes this one`)
  }
  if (wrong.length > 0) throw refused(file, wrong)
  return issues
}

/** The issues of a file for creation. Those that have a key exist already. */
export function readNewIssues(context: AgentContext<unknown>, file: string): Promise<IssueDraft[]> {
  return readDispatch(context, file, ({ key }) => (key === undefined ? ['project', 'type', 'summary'] : []))
}

/** Existing issues: each must have its key, unless the file contains one issue, whose key is `ref`. */
export async function readKnownIssues(
  context: AgentContext<unknown>,
  file: string,
  ref: string | undefined,
): Promise<IssueDraft[]> {
  const issues = await readDispatch(context, file, () => (ref === undefined ? ['key'] : []))
  if (ref === undefined) return issues
  if (issues.length === 1) return [{ ...issues[0], key: ref }]
  throw new AgentError(`[${context.callName}] ref names one issue, but ${file} contains ${issues.length}`, {
    code: 'invalid_request',
    hint: 'leave out ref, and add a key to each issue',
    sent: 'no',
  })
}

/** The keys of the issues that exist already, by their `id` in the file. */
export function keysById(issues: readonly IssueDraft[]): Map<string, string> {
  return new Map(issues.flatMap(({ id, key }) => (id === undefined || key === undefined ? [] : [[`${id}`, key]])))
}

function refused(file: string, wrong: readonly string[]): AgentError {
  const hint = '{"issues": [{"project": "KEY", "type": "Story", "summary": "…"}]}'
  return new AgentError(`${file}: ${wrong.join('; ')}`, { code: 'invalid_request', hint, sent: 'no' })
}
