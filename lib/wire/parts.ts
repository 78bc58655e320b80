// Parts of bodies and records that hub and daemon share.

import type { RunId } from '../files/run-id.ts'
import type { Json, JsonObject } from '../json.ts'
import { nullable } from '../schema/schema.ts'
import { Type } from '../schema/type.ts'

/** The maximum of PostgreSQL's `integer`. */
export const MOST_ID = 2 ** 31 - 1
export const Id = Type.Integer({ minimum: 1, maximum: MOST_ID })
export const Uuid = Type.String({
  pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
  'x-expected': 'a UUID in small letters',
})
/** The id of a run, read: what matches is one. */
export const RunUuid = Type.Unsafe<RunId>(Uuid)
export const Slug = Type.String({
  pattern: '^[a-z0-9][a-z0-9-]{0,62}$',
  'x-expected': 'a name of at most 63 small letters, digits and -',
})
export const OrgId = Type.Union([Id, Type.String({ pattern: '^[1-9][0-9]{0,9}$', description: 'its decimal string' })])
export const Username = Type.String({
  pattern: '^[a-z0-9][a-z0-9._-]{0,62}$',
  'x-expected': 'a name of at most 63 small letters, digits, ., _ and -',
})
export const Password = Type.String({ minLength: 8, maxLength: 1_000 })
/** A secret that the hub looks up by its hash. */
export const Secret = Type.String({ maxLength: 200 })
/** Text that the database can store: PostgreSQL allows no NUL. */
export const Text = (maxLength: number, minLength = 0) =>
  Type.String({ minLength, maxLength, pattern: '^[^\\u0000]*$', 'x-expected': 'a text without NUL characters' })
/** Text of one line, for people. */
export const Title = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: '^[^\\u0000-\\u001f\\u007f]+$',
  'x-expected': 'a text of one line',
})
export const TeamName = Type.String({
  pattern: '^@[a-z0-9][a-z0-9-]{0,62}/[a-z0-9][a-z0-9-]{0,62}$',
  'x-expected': 'a name such as @scope/name (a map in place, @scope/name/phase, runs only as a part of its team)',
})
/** `@scope/name` or `@scope/name@range`. */
export const TeamRef = Type.String({
  pattern: '^@[a-z0-9][a-z0-9-]{0,62}/[a-z0-9][a-z0-9-]{0,62}(@[^@/\\u0000-\\u001f]{1,100})?$',
  'x-expected':
    'a name such as @scope/name or @scope/name@^1.2 (a map in place, @scope/name/phase, runs only as a part of its team)',
})
/** The id of a run or a review, or the beginning of one, as people write it. */
export const WrittenId = Text(100, 1)
/** The name of a thing on a daemon. */
export const Name = Text(200, 1)
/** The path of a file or a folder on the machine of a daemon. */
export const Path = Text(4_096, 1)

/** Epoch milliseconds, in a body. */
export const Moment = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/** Epoch milliseconds, in a record. */
export const Time = Type.Integer()
export const NullableTime = nullable(Time)
export const AnyText = Type.String()
export const NullableText = nullable(AnyText)
export const AnyJson = Type.Unsafe<Json>(Type.Unknown())
export const AnyObject = Type.Unsafe<JsonObject>(Type.Record(Type.String(), Type.Unknown()))
export const AnyList = Type.Unsafe<Json[]>(Type.Array(Type.Unknown()))

const bytes = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }))
const left = (name: string, where: string) =>
  bytes(`The bytes of \`${name}\`, which ${where} has, because this reply has no room for it.`)

/** In a list, what is said of the inputs and outputs of a run that are too large for it. */
export const BYTES_OF_VALUES = {
  inputs_bytes: left('inputs', '`runs/get`'),
  outputs_bytes: left('outputs', '`runs/get`'),
}

/** What is said of the result of a phase that is too large for the reply. */
export const BYTES_OF_RESULT = {
  data_bytes: left('data', 'a call that names the phase'),
  text_bytes: left('text', 'a call that names the phase'),
}

export const SUB_RUNS_MORE = Type.Optional(
  Type.Boolean({ description: 'Whether there are more than the reply has room for; `runs/tree` has all of them.' }),
)

/** In a list, what is said of a review that is too large for it. */
export const BYTES_OF_REVIEW = {
  prompt_bytes: left('prompt', '`reviews/list` with `review_id`'),
  entries_bytes: left('entries', '`reviews/list` with `review_id`'),
  inputs_bytes: left('inputs', '`reviews/list` with `review_id`'),
  reviewers_bytes: left('reviewers', '`reviews/list` with `review_id`'),
  comment_bytes: left('comment', '`reviews/list` with `review_id`'),
  next_bytes: left('next', '`reviews/list` with `review_id`'),
  shown_bytes: left('shown', '`reviews/list` with `review_id`'),
}

/** Of a resume. */
export const OutputsAgain = Type.Boolean({ description: 'Only make outputs again that could not be made.' })
