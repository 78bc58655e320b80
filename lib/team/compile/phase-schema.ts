// The schema of the phases of team.yml: the fields of each type of phase. An agent's fields come from its own schemas.

import type { TObject, TSchema } from 'typebox'
import { CommandNeeds } from '../../agent/commands/sandbox.ts'
import { Type } from '../../schema/type.ts'
import { FIELD_TYPES } from '../../wire/records/forms.ts'
import { PHASE_TYPES } from '../../wire/states.ts'
import type { Phase } from '../model/model.ts'

import {
  Concurrency,
  Condition,
  closed,
  Description,
  durationOf,
  EntryName,
  Env,
  EVENT_WORDS,
  InputField,
  InputName,
  MAX_PHASES,
  Outputs,
  PhaseName,
  Phases,
  someDuration,
  templated,
  Values,
} from './team-schema.ts'

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
    share: Type.Optional(
      Type.Boolean({
        default: true,
        description: 'Whether a message that says that it waits ends with the last lines that its commands printed.',
      }),
    ),
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
