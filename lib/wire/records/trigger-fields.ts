// The fields of a trigger, as they stand in the body of a call and in the `triggers` of a team.

import { closed, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { WATCH_IDENTITIES, WATCHED } from '../../triggers/watch/words.ts'
import { EnvironmentName } from '../names.ts'
import { AnyObject, Name, Path, Text } from '../parts.ts'
import { CHAIN_ENDS, OVERLAPS } from './trigger-words.ts'

const short = (description: string, ...examples: string[]) =>
  Type.Optional(Type.String({ maxLength: 200, ...(examples.length > 0 && { examples }), description }))
export const countUpTo = (maximum: number, description: string) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum, description }))

/** The fields of a schedule. */
export const SCHEDULE = {
  cron: short('Five fields (minute, hour, day, month, weekday), or a nickname such as `@daily`.', '0 6 * * 1-5'),
  every: short('A distance such as `90m`, in whole minutes, counted from `from`.', '90m'),
  at: short('One point in time, such as `2026-12-01T09:00`.', '2026-12-01T09:00'),
  tz: short(
    'The zone of its times, such as `Europe/Berlin`, or `UTC`; absent: the zone of the machine.',
    'Europe/Berlin',
  ),
  from: short('When `every` begins; absent: now.', '2026-12-01T09:00'),
  catch_up: Type.Optional(
    Type.Enum(['none', 'last', 'all'], { description: 'What becomes of slots that were due too long ago.' }),
  ),
  window: short('How late a slot may be that `last` or `all` starts.'),
  max: Type.Optional(Type.Integer({ description: 'How many slots `all` starts.' })),
  late_after: short('How late a slot may be that starts without `catch_up`.'),
  jitter: short('Spreads starts over so long a time; each slot has its own, always the same, delay.'),
}

/** What a chain has to say. */
export const After = Type.String({
  pattern: '^(@[a-z0-9][a-z0-9-]{0,62}/)?[a-z0-9][a-z0-9-]{0,62}$',
  'x-expected': 'the name of a team, such as @acme/build',
  description: 'The team whose top runs it follows: @scope/name, or the name in any scope.',
})

/** The fields of a chain. */
export const CHAIN = {
  after: Type.Optional(After),
  on: Type.Optional(
    Type.Array(Type.Enum([...CHAIN_ENDS]), {
      minItems: 1,
      maxItems: CHAIN_ENDS.length,
      description: 'How the run has to end; absent: completed.',
    }),
  ),
  again: Type.Optional(
    Type.Boolean({ description: 'Whether each attempt of a run counts, so that a resumed run is followed once more.' }),
  ),
}

const patterns = (description: string) =>
  Type.Optional(Type.Array(Type.String({ maxLength: 200 }), { maxItems: 100, description }))

/** What a watch has to say. */
export const Folder = Type.String({
  minLength: 1,
  maxLength: 4_096,
  description: 'The folder whose files it watches: an absolute path, or one that begins with ~/.',
})

/** The fields of a watch. */
export const WATCH = {
  folder: Type.Optional(Folder),
  match: patterns('Which files count, such as `*.pdf`; a pattern with / is one of paths in the folder.'),
  ignore: patterns('Which files and folders do not count.'),
  depth: Type.Optional(Type.Integer({ description: 'How many levels of folders count; 1: the folder alone.' })),
  on: Type.Optional(
    Type.Array(Type.Enum([...WATCHED]), {
      minItems: 1,
      maxItems: WATCHED.length,
      description: 'What is an occasion; absent: added and changed.',
    }),
  ),
  settle: short('For how long a file has to stay the same before it counts.'),
  batch: Type.Optional(
    nullable(Text(200, 1), { description: 'Files that come within so long a time start one run; null: each its own.' }),
  ),
  poll: short('How often it looks where nothing tells it of changes.'),
  initial: Type.Optional(
    Type.Boolean({ description: 'Whether files count that are there when the trigger is added.' }),
  ),
  identity: Type.Optional(
    Type.Enum([...WATCH_IDENTITIES], {
      description: 'What tells a changed file from the one before: size, time and inode, or its content.',
    }),
  ),
  claim: Type.Optional(
    Type.Boolean({ description: 'Whether files are moved away before their run begins, so that it alone has them.' }),
  ),
}

/** The same word says how runs end that a chain follows, and what is an occasion of a watch. */
export const On = Type.Optional(
  Type.Array(Type.Enum([...CHAIN_ENDS, ...WATCHED]), {
    minItems: 1,
    maxItems: CHAIN_ENDS.length,
    description: 'Of a chain, how the run has to end; of a watch, what has to happen to a file.',
  }),
)

/** What every trigger may have. */
export const COMMON = {
  inputs: Type.Optional({ ...AnyObject, description: 'The inputs of its runs; templates name the occasion.' }),
  when: Type.Optional(
    nullable(Text(10_000, 1), { description: 'A CEL expression: only then the occasion starts a run.' }),
  ),
  workspace: Type.Optional(
    nullable(Path, { description: 'Where its runs work: a folder, or the name of a workspace.' }),
  ),
  environment: Type.Optional(
    nullable(EnvironmentName, { description: 'The environment of settings.yml in which its runs work.' }),
  ),
  run_name: Type.Optional(nullable(Name, { description: 'The name of its runs, which lists show.' })),
  overlap: Type.Optional(
    Type.Enum([...OVERLAPS], { description: 'What becomes of an occasion while a run of this trigger has not ended.' }),
  ),
  queue_max: countUpTo(1_000, 'How many firings wait under `overlap: queue`; older ones are skipped.'),
  at_most: Type.Optional(
    nullable(
      closed({
        count: Type.Integer({ minimum: 1, maximum: 10_000, description: 'How many firings.' }),
        per: { ...Text(20, 1), description: 'Within how long, such as 1h.' },
      }),
      {
        description: 'How many firings start within so long a time; others wait.',
      },
    ),
  ),
}
