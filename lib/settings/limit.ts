// How many requests an agent may send within a time, over all runs of the home: the setting `agents.crm.limit`, such as
// `{ count: 40, per: 1s }`. Every agent takes it, unless it has a setting of that name itself. Pure.

import type { AgentDefinition } from '../agent/define.ts'
import { DURATION_PATTERN, parseDuration } from '../duration.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'
import { problems } from '../schema/schema.ts'
import { Type } from '../schema/type.ts'
import { valueAt } from './tree.ts'

const LIMIT = 'limit'

const LimitSetting = Type.Object(
  {
    count: Type.Integer({ minimum: 1, maximum: 100_000 }),
    per: Type.String({ pattern: DURATION_PATTERN, 'x-expected': 'a duration such as 1s or 1m' }),
  },
  { additionalProperties: false },
)

/** The schema of the key below an agent, if it is the limit or a part of it. */
export function limitSchemaAt(path: readonly string[], definition: Pick<AgentDefinition, 'settings'>) {
  const [name, part, ...more] = path
  if (name !== LIMIT || more.length > 0 || LIMIT in definition.settings.properties) return null
  if (part === undefined) return LimitSetting
  return Object.hasOwn(LimitSetting.properties, part)
    ? LimitSetting.properties[part as keyof typeof LimitSetting.properties]
    : null
}

/** The settings of an agent without the limit, which is not its own. */
export function withoutLimit(settings: Json, definition: Pick<AgentDefinition, 'settings'>): Json {
  if (!isObject(settings) || !(LIMIT in settings) || LIMIT in definition.settings.properties) return settings
  const { [LIMIT]: _, ...own } = settings
  return own
}

/** The problem with the limit among the settings of an agent; null if there is none. */
export function limitProblem(settings: Json, definition: Pick<AgentDefinition, 'settings'>): string | null {
  if (!isObject(settings) || !(LIMIT in settings) || LIMIT in definition.settings.properties) return null
  const [wrong] = problems(LimitSetting, settings[LIMIT])
  if (wrong) return `${wrong.path.slice(1).replaceAll('/', '.')} ${wrong.message}`.trim()
  return parseDuration((settings[LIMIT] as { per: string }).per) === 0 ? 'per must be a time above 0' : null
}

/** The limit of an agent, with its time in milliseconds; null if it has none, or one that is not complete. */
export function limitOf(settings: JsonObject, reference: string): { count: number; per: number } | null {
  const { count, per } = (valueAt(settings, ['agents', reference, LIMIT]) ?? {}) as JsonObject
  const time = typeof per === 'string' ? parseDuration(per) : null
  return typeof count === 'number' && count >= 1 && time ? { count, per: time } : null
}
