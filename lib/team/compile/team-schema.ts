// The schema of team.yml: the fields of a team, and the parts that its phases share (phase-schema.ts).

import { DURATION_PATTERN } from '../../duration.ts'
import { Type } from '../../schema/type.ts'
import { HookFields } from '../../triggers/hook/fields.ts'
import { WHEN_FULL } from '../../wire/concurrency.ts'
import { EnvironmentName } from '../../wire/names.ts'
import { Requires } from '../../wire/needs.ts'
import { Slug } from '../../wire/parts.ts'
import { FIELD_TYPES } from '../../wire/records/forms.ts'
import { After, CHAIN, COMMON, Folder, SCHEDULE, WATCH } from '../../wire/records/trigger-fields.ts'
import type { EventName } from '../model/model.ts'

export const MAX_PHASES = 1_000

/** The events of a run, and what has happened when each comes. */
export const EVENT_WORDS: Readonly<Record<EventName, string>> = {
  on_start: 'The run has begun.',
  on_complete: 'The run has completed.',
  on_fail: 'The run has failed.',
  on_cancel: 'The run was cancelled.',
  on_escalate: 'Something waits for a person.',
  on_phase_start: 'A phase has begun.',
  on_phase_complete: 'A phase has completed.',
  on_phase_fail: 'A phase has failed.',
}

export const closed = { additionalProperties: false }
export const templated = { 'x-template': true }
/** Marks values in which `{{` is ordinary text. */
const plain = { 'x-template': 'text' }

const SLUG = '[a-z0-9][a-z0-9-]{0,62}'
export const TEAM_NAME = `^@${SLUG}/${SLUG}$`
/** https://semver.org, 2.0.0. */
const SEMVER =
  '^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)(-[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?(\\+[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?$'

export const PhaseName = Type.String({
  examples: ['fetch'],
  pattern: '^[a-z][a-z0-9_-]{0,99}$',
  'x-expected': 'a name of small letters, digits, - and _ that begins with a letter',
})
export const InputName = Type.String({
  examples: ['project'],
  pattern: '^[A-Za-z][A-Za-z0-9_-]{0,99}$',
  'x-expected': 'a name of letters, digits, - and _ that begins with a letter',
})
export const EntryName = Type.String({ examples: ['count'], minLength: 1, maxLength: 200, 'x-template': false })
export const durationOf = (what: string, example = '5m') => Type.Optional(someDuration(what, example))
export const someDuration = (what: string, example: string) =>
  Type.String({
    pattern: DURATION_PATTERN,
    examples: [example],
    description: `${what} With units: 90s, 5m, 24h, 1h30m.`,
  })
export const Description = Type.String({
  maxLength: 10_000,
  ...plain,
  examples: ['Digest of open tickets'],
  description: 'What it is, in words for people.',
})
export const Concurrency = Type.Integer({ minimum: 1, maximum: 10_000, examples: [4] })
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
          examples: ['deploy-{{ inputs.env }}'],
          description: 'Runs with the same key share its limit. It may name inputs: deploy-{{ inputs.env }}.',
        }),
        limit: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: 10_000,
            default: 1,
            description: 'How many runs may hold the key at once.',
          }),
        ),
        when_full: Type.Optional(
          Type.Enum([...WHEN_FULL], {
            default: 'queue',
            description:
              'What a run does when the limit is reached: wait (queue), end as cancelled (skip), or have the oldest cancelled.',
          }),
        ),
        phases: Type.Optional({ ...Concurrency, description: 'How many phases of one run may run at once.' }),
      },
      closed,
    ),
  ],
  {
    'x-expected': 'a whole number from 1 to 10000, or a mapping with a `key`',
    description: 'How many phases of one run may run at once, or the key that limits how many runs there are at once.',
  },
)
export const Condition = Type.Union([Type.String(), Type.Boolean()], {
  examples: ['phases.fetch.data.total > 0'],
  ...plain,
  'x-expected': 'a CEL expression',
  description: 'CEL that gives a bool; the phase is skipped when it is false.',
})
export const Values = Type.Record(Type.String(), Type.Any(), {
  examples: [{ ticket: '{{ item }}' }],
  ...templated,
  'x-expected': 'a mapping of names to values',
  description: 'The inputs of the team that is called, by name.',
})
export const Env = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
  Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]),
  {
    ...templated,
    examples: [{ PROJECT: '{{ inputs.project }}' }],
    'x-expected': 'a mapping of variable names to values',
    description:
      'Variables for commands. Templates are read here, and never in the text of a command. A null gives an empty variable.',
  },
)

export const InputField = Type.Object(
  {
    name: { ...InputName, description: 'Its name, as in `{{ inputs.name }}`.' },
    type: Type.Optional(
      Type.Enum([...FIELD_TYPES], { default: 'string', description: 'What its value is; a text if it is left out.' }),
    ),
    required: Type.Optional(Type.Boolean({ default: false, description: 'Whether it must be given.' })),
    default: Type.Optional(Type.Any({ ...plain, examples: ['all'], description: 'Its value where none is given.' })),
    choices: Type.Optional(
      Type.Array(Type.Any(plain), {
        minItems: 1,
        maxItems: 1_000,
        examples: [['staging', 'production']],
        description: 'The values that it may have.',
      }),
    ),
    description: Type.Optional(Description),
    secret: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Whether its value is masked everywhere, and kept only until the run ends.',
      }),
    ),
  },
  closed,
)

const OutputField = Type.Object(
  {
    name: { ...InputName, description: 'Its name.' },
    type: Type.Optional(
      Type.Enum([...FIELD_TYPES], {
        default: 'string',
        description: 'What it must be; a text if it is left out. A file is a file of the run.',
      }),
    ),
    value: Type.Any({
      ...templated,
      examples: ['{{ phases.fetch.data.total }}'],
      description: 'Its value, mostly a template; for a file its path, files/….',
    }),
    description: Type.Optional(Description),
  },
  closed,
)

export const Outputs = Type.Array(OutputField, {
  maxItems: 200,
  description: 'The outputs of each item, as a team has them. They name the phases of the map.',
})
export const Phases = Type.Array(Type.Any(templated), {
  minItems: 1,
  maxItems: MAX_PHASES,
  description: 'What is done with each item. The phases read `item`, `index` and the inputs of the team.',
})

/** What may start a team by itself; of the four kinds it has one. Its templates name the occasion, not the run. */
export const TriggerSchema = Type.Object(
  {
    name: { ...Slug, description: 'Its name, by which it is enabled.' },
    schedule: Type.Optional(Type.Object(SCHEDULE, { ...closed, description: 'At the times of a clock.' })),
    hook: Type.Optional(Type.Object(HookFields, { ...closed, description: 'With each delivery of another program.' })),
    watch: Type.Optional(
      Type.Object({ ...WATCH, folder: Folder }, { ...closed, description: 'With files of a folder of the machine.' }),
    ),
    chain: Type.Optional(
      Type.Object({ ...CHAIN, after: After }, { ...closed, description: 'When a run of a team ends.' }),
    ),
    ...COMMON,
  },
  { ...closed, ...plain },
)

/** The environments of settings.yml that runs of a team may have. */
export const EnvironmentsSchema = Type.Object(
  {
    allow: Type.Array(EnvironmentName, {
      minItems: 1,
      maxItems: 100,
      examples: [['staging', 'production']],
      description: 'The environments of settings.yml in which it may run.',
    }),
    default: Type.Optional({
      ...EnvironmentName,
      examples: ['staging'],
      description: 'The one in which it runs if nobody says.',
    }),
  },
  { ...closed, description: 'In which environments of settings.yml it may run, such as staging and production.' },
)

export const TeamSchema = Type.Object(
  {
    name: Type.String({
      pattern: TEAM_NAME,
      examples: ['@local/ticket-digest'],
      'x-expected': 'a name like @scope/name, of small letters, digits and -',
      description: 'The name of the team: @scope/name, with the scope local for what is not published.',
    }),
    version: Type.String({
      pattern: SEMVER,
      examples: ['1.0.0'],
      'x-expected': 'a version of three numbers, such as 1.0.0',
      description: 'Its version, three numbers.',
    }),
    description: Type.Optional(Description),
    inputs: Type.Optional(Type.Array(InputField, { maxItems: 200, description: 'What a caller may give.' })),
    outputs: Type.Optional({ ...Outputs, description: 'What a caller gets.' }),
    concurrency: Type.Optional(ConcurrencySchema),
    requires: Type.Optional(Requires),
    environments: Type.Optional(EnvironmentsSchema),
    timeout: durationOf('How long a whole run may take.', '2h'),
    triggers: Type.Optional(
      Type.Array(TriggerSchema, {
        maxItems: 100,
        description: 'What may start it by itself. Each starts nothing until somebody enables it by its name.',
      }),
    ),
    phases: { ...Phases, description: 'The phases. Those that depend on no other begin together.' },
  },
  closed,
)
