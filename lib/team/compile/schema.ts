// The schema of team.yml: the fields of a team and of each type of phase. An agent's fields come from its own schemas.

import type { TObject, TSchema } from 'typebox'
import { DURATION_PATTERN } from '../../duration.ts'
import { Type } from '../../type.ts'
import { WHEN_FULL } from '../../wire/concurrency.ts'
import { Requires } from '../../wire/needs.ts'

const MAX_PHASES = 1_000

export const EVENTS = [
  'on_start',
  'on_complete',
  'on_fail',
  'on_cancel',
  'on_escalate',
  'on_phase_start',
  'on_phase_complete',
  'on_phase_fail',
] as const

export const FIELD_TYPES = ['string', 'number', 'boolean', 'list', 'object', 'file'] as const

const closed = { additionalProperties: false }
const templated = { 'x-template': true }
/** Marks values in which `{{` is ordinary text. */
const plain = { 'x-template': 'text' }

const SLUG = '[a-z0-9][a-z0-9-]{0,62}'
export const TEAM_NAME = `^@${SLUG}/${SLUG}$`
/** https://semver.org, 2.0.0. */
const SEMVER =
  '^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)(-[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?(\\+[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?$'

const PhaseName = Type.String({
  pattern: '^[a-z][a-z0-9_-]{0,99}$',
  'x-expected': 'a name of small letters, digits, - and _ that begins with a letter',
})
const InputName = Type.String({
  pattern: '^[A-Za-z][A-Za-z0-9_-]{0,99}$',
  'x-expected': 'a name of letters, digits, - and _ that begins with a letter',
})
const EntryName = Type.String({ minLength: 1, maxLength: 200, 'x-template': false })
const Duration = Type.String({ pattern: DURATION_PATTERN, description: 'With units: 90s, 5m, 24h, 1h30m.' })
const Description = Type.String({ maxLength: 10_000, ...plain })
const Concurrency = Type.Integer({ minimum: 1, maximum: 10_000 })
/** How many phases run at once, or the key that runs of the team hold. */
export const ConcurrencySchema = Type.Union(
  [
    Concurrency,
    Type.Object(
      {
        key: Type.String({
          minLength: 1,
          maxLength: 10_000,
          ...templated,
          description: 'Runs with the same key share its places. It may name inputs: deploy-{{ inputs.env }}.',
        }),
        limit: Type.Optional(
          Type.Integer({ minimum: 1, maximum: 10_000, description: 'How many runs may hold the key at once; 1.' }),
        ),
        when_full: Type.Optional(
          Type.Enum([...WHEN_FULL], {
            description:
              'What a run does that finds no place: wait (queue), end as cancelled (skip), or have the oldest cancelled.',
          }),
        ),
        phases: Type.Optional({ ...Concurrency, description: 'How many phases of one run may run at once.' }),
      },
      closed,
    ),
  ],
  { 'x-expected': 'a whole number from 1 to 10000, or a mapping with a `key`' },
)
const Condition = Type.Union([Type.String(), Type.Boolean()], {
  ...plain,
  'x-expected': 'a CEL expression',
  description: 'CEL that gives a bool; the phase is skipped when it is false.',
})
const Values = Type.Record(Type.String(), Type.Any(), { ...templated, 'x-expected': 'a mapping of names to values' })
const Env = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
  Type.Union([Type.String(), Type.Number(), Type.Boolean()]),
  { ...templated, 'x-expected': 'a mapping of variable names to values' },
)

const InputField = Type.Object(
  {
    name: InputName,
    type: Type.Optional(Type.Enum([...FIELD_TYPES], { default: 'string' })),
    required: Type.Optional(Type.Boolean()),
    default: Type.Optional(Type.Any(plain)),
    choices: Type.Optional(Type.Array(Type.Any(plain), { minItems: 1, maxItems: 1_000 })),
    description: Type.Optional(Description),
    secret: Type.Optional(Type.Boolean()),
  },
  closed,
)

const OutputField = Type.Object(
  {
    name: InputName,
    type: Type.Optional(Type.Enum([...FIELD_TYPES])),
    value: Type.Any(templated),
    description: Type.Optional(Description),
  },
  closed,
)

export const TeamSchema = Type.Object(
  {
    name: Type.String({ pattern: TEAM_NAME, 'x-expected': 'a name like @scope/name, of small letters, digits and -' }),
    version: Type.String({ pattern: SEMVER, 'x-expected': 'a version of three numbers, such as 1.0.0' }),
    description: Type.Optional(Description),
    inputs: Type.Optional(Type.Array(InputField, { maxItems: 200 })),
    outputs: Type.Optional(Type.Array(OutputField, { maxItems: 200 })),
    concurrency: Type.Optional(ConcurrencySchema),
    requires: Type.Optional(Requires),
    timeout: Type.Optional(Duration),
    phases: Type.Array(Type.Any(templated), { minItems: 1, maxItems: MAX_PHASES }),
  },
  closed,
)

const Command = Type.Object(
  {
    name: EntryName,
    run: Type.String({ minLength: 1 }),
    env: Type.Optional(Env),
    timeout: Type.Optional(Duration),
    effect: Type.Optional(Type.Enum(['idempotent', 'once'])),
  },
  closed,
)

const Review = Type.Object(
  {
    prompt: Type.String({ minLength: 1, ...templated }),
    reviewers: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 100 })),
    timeout: Type.Optional(Duration),
    inputs: Type.Optional(Type.Array(InputField, { maxItems: 100 })),
  },
  closed,
)

/** Fields of every phase. */
const common = {
  name: PhaseName,
  type: Type.Optional(Type.Enum(['standard', 'gate', 'team', 'map'])),
  depends_on: Type.Optional(Type.Array(PhaseName, { maxItems: MAX_PHASES, 'x-expected': 'a list of phase names' })),
  when: Type.Optional(Condition),
  always: Type.Optional(Type.Boolean()),
  on_failure: Type.Optional(Type.Enum(['fail', 'continue', 'escalate'])),
  retry: Type.Optional(
    Type.Object(
      {
        attempts: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
        backoff: Type.Optional(Duration),
      },
      closed,
    ),
  ),
  timeout: Type.Optional(Duration),
}

const subTeam = {
  team: Type.String({ minLength: 1, description: 'A folder (./ticket, ../beside) or @scope/name[@range].' }),
  inputs: Type.Optional(Values),
}

const Notify = Type.Union(
  [
    Type.Array(Type.Enum([...EVENTS]), { minItems: 1 }),
    Type.Object(Object.fromEntries(EVENTS.map(event => [event, Type.Optional(Type.Any())])), closed),
  ],
  { 'x-expected': 'a list of events, or a mapping of events to their options', ...templated },
)

/** Fields by type of phase. Those of the agent are added to standard phases and listeners. */
export const PHASE_FIELDS = {
  standard: {
    ...common,
    agent: Type.String({ minLength: 1 }),
    action: Type.Optional(Type.String({ minLength: 1 })),
  },
  gate: {
    ...common,
    commands: Type.Optional(Type.Array(Command, { minItems: 1, maxItems: 100 })),
    env: Type.Optional(Env),
    review: Type.Optional(Review),
  },
  team: { ...common, ...subTeam },
  map: {
    ...common,
    ...subTeam,
    items: Type.Array(Type.Any(), templated),
    key: Type.Optional(Type.Union([Type.String(), Type.Number()], templated)),
    concurrency: Type.Optional(Concurrency),
    on_item_failure: Type.Optional(Type.Enum(['stop', 'continue'])),
  },
  listener: { name: PhaseName, agent: Type.String({ minLength: 1 }), notify: Notify },
} satisfies Record<string, Record<string, TSchema>>

export type PhaseKind = keyof typeof PHASE_FIELDS

/** The fields of an agent on the phase itself. Templates are read in them. */
export function ownFields(entry: TObject | undefined): Record<string, TSchema> {
  const required = new Set(entry?.required ?? [])
  const fields: Record<string, TSchema> = {}
  for (const [key, schema] of Object.entries(entry?.properties ?? {})) {
    if (key === 'name') continue
    const marked = { ...schema, ...templated } as TSchema
    fields[key] = required.has(key) ? marked : Type.Optional(marked)
  }
  return fields
}

const entryLists = new WeakMap<TObject, TSchema>()

/** The entries of `sources` or `target_entries`. */
export function entryList(entry: TObject): TSchema {
  const known = entryLists.get(entry)
  if (known) return known
  const required = [...new Set(['name', ...(entry.required ?? [])])]
  const named = { ...entry, properties: { ...entry.properties, name: EntryName }, required }
  const list = Type.Array(named, { minItems: 1, maxItems: 10_000, ...templated })
  entryLists.set(entry, list)
  return list
}

/** An object with exactly these fields. Rules of `together` over several fields (`anyOf`, `not`) apply to it too. */
export function closedObject(fields: Record<string, TSchema>, together?: TSchema): TObject {
  const { anyOf, not } = (together ?? {}) as { anyOf?: TSchema[]; not?: TSchema }
  return Type.Object(fields, { ...closed, ...(anyOf && { anyOf }), ...(not && { not }) })
}
