// Triggers that a team declares: their spec stands in its file, and whoever enables one agrees to what it says then.

import { CadreError } from '../error.ts'
import type { Team } from '../team/team.ts'
import { didYouMean } from '../text/spelling.ts'
import type { TriggerKind } from '../wire/records/trigger-words.ts'
import type { Declared } from '../wire/records/triggers.ts'
import type { TriggerFields } from './check-trigger.ts'
import type { Halt } from './halt.ts'
import { kindOf } from './kinds.ts'
import { refusal } from './refusal.ts'
import type { Trigger } from './trigger.ts'

/** A version of a team, as far as it says what may start it. */
export type Declaring = Pick<Team, 'name' | 'version' | 'triggers'>

/** The trigger of this name, as a call adds it. Throws `not_found`. */
export function declaredBy(
  team: Declaring,
  name: string,
): { source: Declared; fields: Omit<TriggerFields, 'team'> } & Pick<Trigger, 'kind'> {
  const found = team.triggers.find(each => each.name === name)
  if (found) {
    const { kind, fields } = found
    return { kind, fields, source: { team: team.name, version: team.version, name, fields } }
  }
  const names = team.triggers.map(each => each.name)
  const there = names.length === 0 ? 'it declares none' : `it declares ${names.join(', ')}`
  throw new CadreError('not_found', `${team.name} has no trigger ${name}${didYouMean(name, names)}: ${there}`)
}

/** What the triggers of a team mean, for people. `tz`: the zone where none is written. */
export function declaredWords(
  team: Team,
  around: { tz: string; now: number },
): { name: string; kind: TriggerKind; words: string }[] {
  return team.triggers.map(({ name, kind: named, fields }) => {
    const kind = kindOf({ kind: named })
    const { own } = kind.check(fields, { ...around, overlap: kind.overlap, isNew: false })
    return { name, kind: named, words: own === undefined ? '' : kind.words(own) }
  })
}

/** Why a trigger starts nothing any more whose file says something else now. */
export function changedSince({ name, source }: Pick<Trigger, 'name' | 'source'>, team: Declaring): Halt | null {
  if (source === 'manual' || source.keep) return null
  const now = team.triggers.find(each => each.name === source.name)
  if (now && Bun.deepEquals(now.fields, source.fields)) return null
  const what = now ? 'changed' : 'is gone'
  return { state: 'refused', reason: 'team', detail: `the spec of ${name} ${what} in ${team.version}; enable it again` }
}

/** Secrets are of the machine and not of the file, and what a realm asks of its daemons is of the realm. */
const NOT_IN_FILES = ['add_secret', 'expire_secret', 'requires', 'priority', 'queue_timeout']

/** Throws `conflict` when a trigger that is here already cannot become what its file says. */
export function mustFitFile(known: Pick<Trigger, 'name' | 'kind'>, kind: TriggerKind, secret: string | undefined) {
  const { name } = known
  if (known.kind !== kind) {
    const message = `${name} is a ${known.kind} here and a ${kind} in the file: remove it here first`
    throw new CadreError('conflict', message)
  }
  if (secret === undefined) return
  const message = `${name} has a secret already: \`add_secret\` of triggers/update adds another one`
  throw new CadreError('conflict', message)
}

/** Where a trigger of a team stands when somebody says whether it goes on as it is. Throws `invalid_request`. */
export function kept({ name, source }: Pick<Trigger, 'name' | 'source'>, keep: boolean): Trigger['source'] {
  if (source !== 'manual') return { ...source, keep }
  throw new CadreError('invalid_request', `${name} stands in no team.yml, so only a person changes it`)
}

/**
 * Why a trigger of `source` cannot be added: `other` has its name. The name of a declared one stands in a file, so the other
 * one gives way; it may be declared, too, because a home or a realm finds those by their source.
 */
export function nameTaken(
  place: 'home' | 'realm',
  { name, spec }: Pick<Trigger, 'name' | 'spec'>,
  source: Trigger['source'],
): CadreError {
  if (source === 'manual')
    return new CadreError('conflict', `the ${place} has a trigger ${name} already: choose another name`)
  const way = 'give that one another `name` with triggers/update first'
  return new CadreError('conflict', `the ${place} has the trigger ${name} of ${spec.team}: ${way}`)
}

/** Throws `conflict` for a change of what stands in a file. `changes`: without the name, by which others call it. */
export function mustBeOwn({ name, source }: Pick<Trigger, 'name' | 'source'>, changes: readonly string[]): void {
  const [change] = changes.filter(each => !NOT_IN_FILES.includes(each))
  if (source === 'manual' || change === undefined) return
  const message = `${name} is defined in the team.yml of ${source.team}: change it there, and enable it again`
  throw new CadreError('conflict', message)
}

/** Which trigger of a team a body enables. Throws `invalid_request` unless it names one. */
export function declared<B extends { team: string; name?: string | undefined; trigger_id?: string | undefined }>(
  body: B,
): B & { name: string } {
  const { name, trigger_id } = body
  if (name !== undefined && trigger_id === undefined) return { ...body, name }
  throw refusal([{ path: '/name', message: 'is required beside `team`: the name of one of its triggers' }])
}
