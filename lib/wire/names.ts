// The grammar of names that daemon and hub send each other: characters and length. It lists no names, because the other
// side may be newer: a kind or a state that this program does not know is kept as its text, and shown as such.

import { Type } from '../schema/type.ts'

/** A state, a kind, the name of an event. */
export const Word = Type.String({
  pattern: '^[a-z][a-z0-9_]{0,99}$',
  'x-expected': 'a word of small letters, digits and _',
})

/** The code of an error. */
export const ErrorCode = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$',
  'x-expected': 'a code of letters, digits and _ . : -',
})

export const PhaseName = Type.String({
  pattern: '^[a-z][a-z0-9_-]{0,99}$',
  'x-expected': 'a name of small letters, digits, - and _ that begins with a letter',
})

/** The name of an input or of an output. */
export const FieldName = Type.String({
  pattern: '^[A-Za-z][A-Za-z0-9_-]{0,99}$',
  'x-expected': 'a name of letters, digits, - and _ that begins with a letter',
})

const SLUG = '[a-z0-9][a-z0-9-]{0,62}'
export const MAX_TEAM_PATH = 1_000
/** The name of a team, and below it the phases whose own teams stand in the same file. */
export const TeamPath = Type.String({
  pattern: `^@${SLUG}/${SLUG}(/[a-z][a-z0-9_-]{0,99})*$`,
  maxLength: MAX_TEAM_PATH,
  'x-expected': 'a name such as @scope/name',
})

/** Versions of teams, agents and programs. */
export const Version = Type.String({
  pattern: '^[0-9A-Za-z][0-9A-Za-z.+_-]{0,99}$',
  'x-expected': 'a version such as 1.0.0',
})

/** An agent, and perhaps which account of it. */
export const AgentName = Type.String({
  pattern: '^[a-z][a-z0-9_-]{0,99}(@[A-Za-z0-9_-]{1,100})?$',
  'x-expected': 'an agent such as `exec` or `issues@eu`',
})

/** An agent and one of its channels, where people are told something. */
export const ACCOUNT = '^([a-z][a-z0-9_-]{0,99}(?:@[A-Za-z0-9_-]{1,100})?):([^\\s\\p{C}]{1,100})$'
export const AccountName = Type.String({
  pattern: ACCOUNT,
  'x-expected': 'an account "agent:channel", such as "chat:ops"',
})

/** An environment of settings.yml, such as `staging`. */
export const EnvironmentName = Type.String({
  pattern: '^[a-z][a-z0-9_-]{0,62}$',
  'x-expected': 'the name of an environment: small letters, digits, - and _, and first a letter',
})

/** A text of one line in which everything is seen. */
export const Title = (maxLength: number) =>
  Type.String({
    minLength: 1,
    maxLength,
    pattern: '^[^\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}]+$',
    'x-expected': 'a text of one line without characters that nobody sees',
  })
