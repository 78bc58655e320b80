// The schema of team.yml: the fields of a team and of each type of phase. An agent's fields come from its own schemas.

import type { TObject, TSchema } from 'typebox'
import { CommandNeeds } from '../../agent/commands/sandbox.ts'
import { DURATION_PATTERN } from '../../duration.ts'
import { Type } from '../../schema/type.ts'
import { HookFields } from '../../triggers/hook/fields.ts'
import { WHEN_FULL } from '../../wire/concurrency.ts'
import { EnvironmentName } from '../../wire/names.ts'
import { Requires } from '../../wire/needs.ts'
import { Slug } from '../../wire/parts.ts'
import { FIELD_TYPES } from '../../wire/records/forms.ts'
import { After, CHAIN, COMMON, Folder, SCHEDULE, WATCH } from '../../wire/records/trigger-fields.ts'
import { PHASE_TYPES } from '../../wire/states.ts'
import type { EventName, Phase } from '../model/model.ts'

const MAX_PHASES = 1_000

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
  examples: ['fetch'],
  pattern: '^[a-z][a-z0-9_-]{0,99}$',
  'x-expected': 'a name of small letters, digits, - and _ that begins with a letter',
})
const InputName = Type.String({
  examples: ['project'],
  pattern: '^[A-Za-z][A-Za-z0-9_-]{0,99}$',
  'x-expected': 'a name of letters, digits, - and _ that begins with a letter',
})
const EntryName = Type.String({ examples: ['count'], minLength: 1, maxLength: 200, 'x-template': false })
const durationOf = (what: string, example = '5m') => Type.Optional(someDuration(what, example))
const someDuration = (what: string, example: string) =>
  Type.String({
    pattern: DURATION_PATTERN,
    examples: [example],
    description: `${what} With units: 90s, 5m, 24h, 1h30m.`,
  })
const Description = Type.String({
  maxLength: 10_000,
  ...plain,
  examples: ['Digest of open tickets'],
  description: 'What it is, in words for people.',
})
const Concurrency = Type.Integer({ minimum: 1, maximum: 10_000, examples: [4] })
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
const Condition = Type.Union([Type.String(), Type.Boolean()], {
  examples: ['phases.fetch.data.total > 0'],
  ...plain,
  'x-expected': 'a CEL expression',
  description: 'CEL that gives a bool; the phase is skipped when it is false.',
})
const Values = Type.Record(Type.String(), Type.Any(), {
  examples: [{ ticket: '{{ item }}' }],
  ...templated,
  'x-expected': 'a mapping of names to values',
  description: 'The inputs of the team that is called, by name.',
})
const Env = Type.Record(
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

const InputField = Type.Object(
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

const Outputs = Type.Array(OutputField, {
  maxItems: 200,
  description: 'The outputs of each item, as a team has them. They name the phases of the map.',
})
const Phases = Type.Array(Type.Any(templated), {
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

const Command = Type.Object(
  {
    name: { ...EntryName, description: 'The name of the command, for logs and results.' },
    run: Type.String({
      minLength: 1,
      examples: ['wc -l < tickets.json'],
      description:
        'The command line, which sh runs in the workspace. With several lines, begin with `set -e` to stop at the first that fails.',
    }),
    env: Type.Optional(Env),
    timeout: durationOf('How long the command may take.'),
    effect: Type.Optional(
      Type.Enum(['idempotent', 'once'], {
        default: 'idempotent',
        description: 'Whether the command may run again (idempotent, the default) or never by itself (once).',
      }),
    ),
  },
  closed,
)

const Review = Type.Object(
  {
    prompt: Type.String({
      minLength: 1,
      ...templated,
      examples: ['Publish the digest?'],
      description: 'What the person is asked.',
    }),
    reviewers: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        minItems: 1,
        maxItems: 100,
        default: ['any'],
        examples: [['ada', 'grace']],
        description: 'Who may decide: names of users of the hub, or any for whoever may decide.',
      }),
    ),
    timeout: durationOf('How long to wait for the answer, before the review escalates.', '24h'),
    inputs: Type.Optional(
      Type.Array(InputField, { maxItems: 100, description: 'A form. Its values become the data of the phase.' }),
    ),
  },
  { ...closed, description: 'The question to a person, which is asked once the commands have passed.' },
)

/** When a phase is done, how long to wait otherwise, and how often. */
const RepeatSchema = Type.Object(
  {
    until: {
      ...Condition,
      examples: ["result.data.state == 'done'"],
      description: 'CEL that gives a bool; the phase is done when it is true. `result` is what this turn gave.',
    },
    every: someDuration('How long to wait after a turn.', '30s'),
    most: Type.Integer({
      minimum: 1,
      maximum: 10_000,
      examples: [40],
      description: 'How many turns there are at most; the phase then fails.',
    }),
  },
  {
    ...closed,
    description: 'Repeats the phase until a condition holds, such as until an export is ready. Each time is a turn.',
  },
)

const LimitSchema = Type.Object(
  {
    count: Type.Integer({
      minimum: 1,
      maximum: 100_000,
      examples: [10],
      description: 'How many may begin within the time.',
    }),
    per: someDuration('The time.', '1s'),
  },
  {
    ...closed,
    description:
      'How many entries, or commands, may begin within a time: of the phase and of all that runs below it, each attempt counted.',
  },
)

/** Fields of every phase. */
const common = {
  name: { ...PhaseName, description: 'The name of the phase, as in `{{ phases.name.data }}` and files/<name>/.' },
  type: Type.Optional(
    Type.Enum([...PHASE_TYPES], {
      default: 'standard',
      description:
        'What it does: call an agent (standard, the default), ask a person, run a team, or one for each item.',
    }),
  ),
  depends_on: Type.Optional(
    Type.Array(PhaseName, {
      maxItems: MAX_PHASES,
      examples: [['fetch']],
      'x-expected': 'a list of phase names',
      description: 'The phases that must end before this one begins.',
    }),
  ),
  when: Type.Optional(Condition),
  always: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Whether it runs even after a failure, a cancel or a time-out of the run.',
    }),
  ),
  on_failure: Type.Optional(
    Type.Enum(['fail', 'continue', 'escalate'], {
      default: 'fail',
      description:
        'What a failure does: end the run (fail, the default), nothing (continue), or ask a person (escalate).',
    }),
  ),
  retry: Type.Optional(
    Type.Object(
      {
        attempts: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: 100,
            default: 1,
            examples: [3],
            description: 'How often it is tried, the first time included.',
          }),
        ),
        backoff: durationOf(
          'How long to wait before the second attempt, 2s if it is left out; the wait then doubles.',
          '10s',
        ),
      },
      { ...closed, description: 'Repeats the phase after a failure that may be temporary.' },
    ),
  ),
  repeat: Type.Optional(RepeatSchema),
  limit: Type.Optional(LimitSchema),
  timeout: durationOf('How long one attempt may take.'),
}

const subTeam = {
  team: Type.String({
    minLength: 1,
    examples: ['./ticket'],
    description: 'A folder (./ticket, ../beside) or @scope/name[@range].',
  }),
  inputs: Type.Optional(Values),
}

/** An input that a map gives to its own phases, in the form of an output. */
const GivenField = Type.Object(
  {
    name: { ...InputName, description: 'Its name, as in `{{ inputs.name }}`.' },
    type: Type.Optional(
      Type.Enum([...FIELD_TYPES], { default: 'string', description: 'What it must be; a text if it is left out.' }),
    ),
    value: Type.Any({ ...templated, examples: ['{{ item.path }}'], description: 'Its value, mostly a template.' }),
    secret: Type.Optional(Type.Boolean({ default: false, description: 'Whether its value is masked everywhere.' })),
    description: Type.Optional(Description),
  },
  closed,
)
export const NOTIFY_WORDS = 'The events of the run to report, as a list or each with its message.'

const Notify = Type.Union(
  [
    Type.Array(Type.Enum(Object.keys(EVENT_WORDS)), { minItems: 1 }),
    Type.Object(
      Object.fromEntries(
        Object.entries(EVENT_WORDS).map(([event, description]) => [event, Type.Optional(Type.Any({ description }))]),
      ),
      closed,
    ),
  ],
  {
    examples: [['on_fail']],
    'x-expected': 'a list of events, or a mapping of events to their options',
    ...templated,
    description: NOTIFY_WORDS,
  },
)

export const AGENT_WORDS = 'The agent, such as exec; issues@eu is issues with the settings of agents.issues@eu.'
export const ACTION_WORDS = 'What the agent does, if it can do several things.'

/** Fields by type of phase. Those of the agent are added to standard phases and listeners. */
export const PHASE_FIELDS = {
  standard: {
    ...common,
    agent: Type.String({ minLength: 1, examples: ['exec'], description: AGENT_WORDS }),
    action: Type.Optional(Type.String({ minLength: 1, examples: ['search'], description: ACTION_WORDS })),
  },
  gate: {
    ...common,
    commands: Type.Optional(
      Type.Array(Command, {
        minItems: 1,
        maxItems: 100,
        description: 'Commands that must pass. The person sees what they print.',
      }),
    ),
    env: Type.Optional(Env),
    needs: Type.Optional(CommandNeeds),
    review: Type.Optional(Review),
  },
  team: { ...common, ...subTeam },
  map: {
    ...common,
    ...subTeam,
    team: Type.Optional({ ...subTeam.team, description: 'A folder or a package that does it, in place of `phases`.' }),
    inputs: Type.Optional(
      Type.Union([Values, Type.Array(GivenField, { maxItems: 200 })], {
        'x-expected': 'a mapping of names to values, or a list of inputs with their types',
        description:
          'What the team that is called gets, or what `phases` read as `inputs.name` beside the inputs here.',
      }),
    ),
    phases: Type.Optional(Phases),
    outputs: Type.Optional(Outputs),
    items: Type.Array(Type.Any(), {
      ...templated,
      examples: ['{{ phases.fetch.data.items }}'],
      description: 'The list; its items are `item`, and their positions from 0 `index`.',
    }),
    key: Type.Optional(
      Type.Union([Type.String(), Type.Number()], {
        ...templated,
        examples: ['{{ item.key }}'],
        description: 'What names an item, so that a resume finds it again; its position if it is left out.',
      }),
    ),
    concurrency: Type.Optional({ ...Concurrency, default: 16, description: 'How many items run at once.' }),
    on_item_failure: Type.Optional(
      Type.Enum(['stop', 'continue'], {
        default: 'stop',
        description: 'Whether an item that fails ends the map (stop, the default) or only itself (continue).',
      }),
    ),
  },
  listener: {
    name: { ...PhaseName, description: 'The name of the listener.' },
    agent: Type.String({ minLength: 1, examples: ['exec'], description: AGENT_WORDS }),
    notify: Notify,
  },
} satisfies Record<Phase['type'] | 'listener', Record<string, TSchema>>

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
