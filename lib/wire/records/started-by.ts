// Who or what started a top run. A sub-run has the run above instead. Names in it come from people, and are shown like any
// other text of strangers.

import type { Static, TProperties } from 'typebox'
import { matches, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { AnyText } from '../parts.ts'

export const STARTER_KINDS = [
  ...(['person', 'token', 'service', 'mcp', 'schedule', 'hook', 'watch', 'chain', 'move', 'unknown'] as const),
] as const
type StarterKind = (typeof STARTER_KINDS)[number]

const kind = <K extends StarterKind, P extends TProperties>(name: K, fields: P) =>
  Type.Object({ kind: Type.Literal(name), ...fields })

/** How somebody called: with the command line, from a page, or with any other program. */
const Via = Type.Enum(['cli', 'page', 'api'], {
  description: 'Whether it came by the command line, a page, or the API.',
})
export type Via = Static<typeof Via>

const By = Type.Object({ by: AnyText })
/** What each kind of trigger says. `manual`: a person started it now, or once more. */
const fired = <K extends StarterKind, P extends TProperties>(name: K, fields: P) =>
  kind(name, {
    trigger: AnyText,
    name: AnyText,
    firing: AnyText,
    ...fields,
    manual: Type.Optional(Type.Object(By.properties, { description: 'The person who fired the trigger by hand.' })),
  })

/** A file that a watch reported. */
export const File = Type.Object({
  path: AnyText,
  name: AnyText,
  bytes: Type.Integer({ minimum: 0 }),
  mtime: Type.Integer({ description: 'When the file was last changed, in epoch milliseconds.' }),
  sha256: Type.Optional(AnyText),
})

export const StartedBy = Type.Union([
  kind('person', { name: AnyText, via: Via }),
  kind('token', { name: AnyText, owner: AnyText, via: Via }),
  kind('service', { identity: AnyText, subject: AnyText }),
  kind('mcp', { name: AnyText, client: AnyText, conversation: Type.Optional(AnyText) }),
  fired('schedule', {
    slot: Type.String({ description: 'The moment for which the run is, in ISO 8601.' }),
    late_ms: Type.Integer({ description: 'How much later than that it was started, in milliseconds.' }),
    catch_up: Type.Boolean({ description: 'Whether the slot had been missed.' }),
  }),
  fired('hook', { delivery: Type.String({ description: 'The id of the delivery, as its sender gave it.' }) }),
  fired('watch', { files: Type.Array(File) }),
  fired('chain', {
    run_id: AnyText,
    depth: Type.Integer({ minimum: 1, description: 'How many runs were started one by another before it.' }),
    attempt: Type.Optional(Type.Integer({ description: 'The attempt of that run, where the chain follows each.' })),
  }),
  kind('move', { run_id: AnyText, ...By.properties }),
  kind('unknown', {}),
])
export type StartedBy = Static<typeof StartedBy>

/** Of a run from before this was recorded, and of one whose sender does not say. */
export const UNKNOWN_STARTER: StartedBy = { kind: 'unknown' }

/** As clients read it. A newer program may know more kinds, and programs of 0.1.0 leave it out. */
export const StartedByView = Type.Optional(nullable(Type.Union([...StartedBy.anyOf, Type.Object({ kind: AnyText })])))
export type StartedByView = Static<typeof StartedByView>

/** The filter of lists: a kind, or a kind and a name, such as `schedule:nightly`. */
export const StarterFilter = Type.String({
  maxLength: 300,
  pattern: `^(${STARTER_KINDS.join('|')})(:[^\\u0000]+)?$`,
  'x-expected': `one of ${STARTER_KINDS.join(', ')}, or that and a name, such as schedule:nightly`,
  description: 'Only top runs that this started: a kind, or a kind and a name, such as `schedule:nightly`.',
})

/** The kind and the name of a filter; null stands for any name. */
export function starterOf(filter: string): { kind: string; name: string | null } {
  const colon = filter.indexOf(':')
  return colon === -1 ? { kind: filter, name: null } : { kind: filter.slice(0, colon), name: filter.slice(colon + 1) }
}

/** The name by which a filter finds it, as the statements of a home have it (`lib/run/store/run-lists.ts`). */
export function starterName(by: StartedBy): string | null {
  if (by.kind === 'service') return by.identity
  if (by.kind === 'move') return by.by
  return by.kind === 'unknown' ? null : by.name
}

/** What a sender says started a run, if this program knows its form. */
export const readStarter = (given: unknown): StartedBy => (matches(StartedBy, given) ? given : UNKNOWN_STARTER)
