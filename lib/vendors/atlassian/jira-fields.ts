// Converts fields of Jira issues from the form in which people write them: by name or id, with texts as Markdown, and
// choices and people as plain text.
// https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-issue-fields/

import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import type { Json, JsonObject } from '../../json.ts'
import { markdownToAdf } from './adf-write.ts'

/** A field as `GET /rest/api/3/field` lists it. */
export interface JiraField {
  id: string
  name: string
  schema?: { type: string; items?: string; system?: string; custom?: string }
}

type Placed = Pick<AgentContext, 'callName'>

/** By type: the property into which Jira expects a plain text to be wrapped. */
const HOLDERS: Record<string, string> = {
  option: 'value',
  user: 'accountId',
  issuelink: 'key',
  component: 'name',
  group: 'name',
  issuetype: 'name',
  parent: 'key',
  priority: 'name',
  project: 'key',
  resolution: 'name',
  securitylevel: 'name',
  version: 'name',
}

/**
 * The `fields` of a request. Names become ids, plain texts and numbers are converted to the field's type, and a single
 * value becomes a list where the field has several. Null empties a field, and objects are left as they are. Throws an
 * AgentError `invalid_request` for a name that no field has, or that several fields have.
 */
export async function jiraFields(context: Placed, given: JsonObject, known: readonly JiraField[]): Promise<JsonObject> {
  const fields: JsonObject = {}
  for (const [name, value] of Object.entries(given)) {
    const field = fieldNamed(context, name, known)
    fields[field.id] = await valueFor(context, field, value)
  }
  return fields
}

function fieldNamed({ callName }: Placed, name: string, known: readonly JiraField[]): JiraField {
  const byId = known.find(({ id }) => id === name)
  if (byId) return byId
  const named = known.filter(field => field.name.toLowerCase() === name.toLowerCase())
  if (named.length === 1) return named[0]!
  const ids = named.map(({ id }) => id).join(', ')
  const message = named.length > 1 ? `several fields are named "${name}": ${ids}` : `no field is named "${name}"`
  const hint =
    named.length > 1 ? 'use the id of the field instead' : 'check the spelling, and that the account may see the field'
  throw new AgentError(`[${callName}] ${message}`, { code: 'invalid_request', hint, sent: 'no' })
}

async function valueFor({ callName }: Placed, { id, name, schema }: JiraField, value: Json): Promise<Json> {
  if (value === null) return null
  if (!schema) return held(id, value)
  const { type, items } = schema
  if ([type, items].includes('user') && [value].flat().some(isAddress)) {
    const hint = 'the id of a person is in the address of their profile, after /jira/people/'
    throw new AgentError(`[${callName}] ${name} must be the id of an account, not an e-mail address`, {
      code: 'invalid_request',
      hint,
      sent: 'no',
    })
  }
  if (typeof value === 'string' && holdsDocument(schema)) return markdownToAdf(value)
  if (type === 'option-with-child') return cascade(value)
  // Jira returns a sprint as a list of objects, but expects a single number when it is written.
  if (type !== 'array' || items === 'json') return held(type, value)
  return [value].flat().map(item => held(items, item))
}

const isAddress = (value: Json) => typeof value === 'string' && value.includes('@')

/** A cascading choice with two levels: `["Europe", "France"]`, or only the first level. */
function cascade(value: Json): Json {
  const [first, second, ...more] = [value].flat()
  if (typeof first !== 'string' || more.length > 0) return value
  return { value: first, ...(second !== undefined && { child: { value: second } }) }
}

function holdsDocument({ system, custom }: NonNullable<JiraField['schema']>): boolean {
  return system === 'description' || system === 'environment' || (custom?.endsWith(':textarea') ?? false)
}

/**
 * Jira requires ISO 8601 with milliseconds and an offset without a colon. Jira interprets a time without an offset in
 * its own time zone.
 */
function moment(text: string): string {
  const time = /T.*(Z|[+-]\d\d:?\d\d)$/i.test(text) ? new Date(text) : null
  return time && !Number.isNaN(time.getTime()) ? time.toISOString().replace('Z', '+0000') : text
}

function held(type: string | undefined, value: Json): Json {
  if (typeof value !== 'string' && typeof value !== 'number') return value
  if (type === 'number') return value === '' || Number.isNaN(Number(value)) ? value : Number(value)
  if (type === 'string') return `${value}`
  if (type === 'datetime') return moment(`${value}`)
  const holder = type === undefined ? undefined : HOLDERS[type]
  return holder ? { [holder]: `${value}` } : value
}
