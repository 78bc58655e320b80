// The file of an event that is posted to Datadog: JSON with a title and a text, and what else the vendor takes.
// https://docs.datadoghq.com/api/latest/events/#post-an-event

import { isObject, type JsonObject } from '../json.ts'
import { type AgentContext, AgentError } from './define.ts'
import { readText } from './vendor.ts'

const FILE_MOST = 1024 * 1024
/** Characters of an event's text; Datadog cuts the rest silently. */
const TEXT_MOST = 4_000

export interface DatadogEvent extends JsonObject {
  title: string
  text: string
}

/** Throws an AgentError `invalid_request` that says what is wrong with the file. */
export async function readDatadogEvent(
  context: AgentContext<unknown>,
  file: string,
): Promise<DatadogEvent & { tags?: string[] }> {
  const text = await readText(context, file, FILE_MOST)
  const problem = (what: string) =>
    new AgentError(`[${context.place}] ${file} ${what}`, {
      code: 'invalid_request',
      hint: 'an event is JSON: {"title": …, "text": …, "tags"?: […], "alert_type"?: …}',
      sent: 'no',
    })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw problem('is no JSON')
  }
  const event = isObject(value) ? value : {}
  for (const field of ['title', 'text']) if (typeof event[field] !== 'string') throw problem(`has no \`${field}\``)
  if ((event.text as string).length > TEXT_MOST) throw problem(`has a text of more than ${TEXT_MOST} characters`)
  if (event.tags !== undefined && !Array.isArray(event.tags)) throw problem('has `tags` that are no list')
  return event as DatadogEvent & { tags?: string[] }
}
