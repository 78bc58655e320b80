// Filters of a search in HubSpot: as they stand in team.yml, and as the vendor takes them.
// https://developers.hubspot.com/docs/api-reference/search/guide

import type { Static } from 'typebox'
import type { JsonObject } from '../json.ts'
import { Type } from '../type.ts'
import { type AgentContext, AgentError } from './define.ts'

const OPERATORS = [
  ...['EQ', 'NEQ', 'LT', 'LTE', 'GT', 'GTE', 'BETWEEN', 'IN', 'NOT_IN'],
  ...['HAS_PROPERTY', 'NOT_HAS_PROPERTY', 'CONTAINS_TOKEN', 'NOT_CONTAINS_TOKEN'],
]
const Value = Type.Union([Type.String(), Type.Number(), Type.Boolean()])

export const HubSpotFilter = Type.Object(
  {
    property: Type.String({ minLength: 1 }),
    operator: Type.Enum(OPERATORS),
    value: Type.Optional(Value),
    values: Type.Optional(Type.Array(Value, { minItems: 1 })),
  },
  { additionalProperties: false },
)

/** Throws an AgentError `invalid_request` where the operator takes another number of values. */
export function toHubSpotFilter(
  { property, operator, value, values }: Static<typeof HubSpotFilter>,
  { place }: Pick<AgentContext, 'place'>,
): JsonObject {
  const filter = { propertyName: property, operator }
  const invalid = (takes: string) =>
    new AgentError(`[${place}] filter of ${property}: ${operator} takes ${takes}`, {
      code: 'invalid_request',
      sent: 'no',
    })
  if (operator === 'IN' || operator === 'NOT_IN') {
    const all = values ?? (value === undefined ? [] : [value])
    if (all.length === 0) throw invalid('`values`')
    return { ...filter, values: all.map(String) }
  }
  if (operator !== 'BETWEEN') {
    if (values) throw invalid('`value`, not `values`')
    return { ...filter, ...(value !== undefined && { value: `${value}` }) }
  }
  if (values?.length !== 2) throw invalid('`values: [lowest, highest]`')
  return { ...filter, value: `${values[0]}`, highValue: `${values[1]}` }
}
