// What a grant names: the entities, and the levels of access to them. Nothing is imported here, so that the pages can
// take them without loading schemas.

export const ENTITIES = [
  'users',
  'orgs',
  'scopes',
  'teams',
  'tokens',
  'realms',
  'daemons',
  'runs',
  'dispatch',
  'triggers',
] as const
export type Entity = (typeof ENTITIES)[number]

export const LEVELS = ['read', 'write', 'admin'] as const
export type Level = (typeof LEVELS)[number]
