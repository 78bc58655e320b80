// What `status` and `doctor` say of triggers: how many there are, what comes next, and those that are broken or were
// refused lately, which nobody would notice otherwise.

import { SQLiteError } from 'bun:sqlite'
import { CadreError } from '../../../error.ts'
import { commandLine } from '../../../program/called-as.ts'
import { ListTriggers } from '../../../wire/calls/triggers.ts'
import type { TriggerRecord } from '../../../wire/records/triggers.ts'
import { clock } from '../terminal/table.ts'
import { askAboutTriggers } from './trigger-answers.ts'

const LATELY_MS = 7 * 86_400_000
const AT_ONCE = 100

export interface TriggersStatus {
  all: number
  active: number
  /** The slot of an active one that comes first. */
  next: { name: string; at: number; local: string } | null
  /** Those that are broken, or of which an occasion was refused lately: the name, and why. */
  wrong: { name: string; text: string }[]
}

/** Null when the process that holds the home does not answer, or its database cannot be read. */
export async function triggersIn(home: string): Promise<TriggersStatus | null> {
  try {
    const all = await everyTrigger(home)
    const active = all.filter(({ state }) => state === 'active')
    const slots = active.flatMap(({ name, next: [slot] }) => (slot ? [{ name, ...slot }] : []))
    return {
      all: all.length,
      active: active.length,
      next: slots.sort((a, b) => a.at - b.at)[0] ?? null,
      wrong: all.flatMap(wrongWith),
    }
  } catch (error) {
    if (error instanceof SQLiteError || (error instanceof CadreError && error.code === 'unavailable')) return null
    throw error
  }
}

async function everyTrigger(home: string): Promise<TriggerRecord[]> {
  return askAboutTriggers(home, async callee => {
    const found: TriggerRecord[] = []
    for (;;) {
      const { triggers, total } = await callee.call(ListTriggers, { limit: AT_ONCE, offset: found.length })
      found.push(...triggers)
      if (triggers.length === 0 || found.length >= total) return found
    }
  })
}

/** A run that started since shows that what refused an occasion was mended. */
export function wrongWith({ name, problem, last }: TriggerRecord): TriggersStatus['wrong'] {
  if (problem) return [{ name, text: `broken since ${clock(problem.since)}: ${problem.text}` }]
  const judged = last.filter(({ state }) => state === 'refused' || state === 'started')
  const newest = judged.sort((one, other) => other.seen_at - one.seen_at)[0]
  const refused = newest?.state === 'refused' && newest.seen_at > Date.now() - LATELY_MS ? newest : null
  if (!refused) return []
  return [{ name, text: `refused at ${clock(refused.seen_at)} (${refused.reason}): ${refused.detail}` }]
}

/** A trigger that needs somebody: which one, and why, with the command that says more. */
export interface Trouble {
  who: string
  text: string
}

/** `realm`: the one whose triggers they are; absent for those of a home. */
export function troublesWith(wrong: TriggersStatus['wrong'], realm?: string): Trouble[] {
  const [of, where] = realm === undefined ? ['', []] : [` of realm ${realm}`, ['--realm', realm]]
  return wrong.map(({ name, text }) => ({
    who: `trigger ${name}${of}`,
    text: `${text}; ${commandLine('why', name, ...where)}`,
  }))
}

export const inWords = ({ who, text }: Trouble): string => `${who}: ${text}`

export function problemsOfTriggers({ active, wrong }: TriggersStatus, isServed: boolean): string[] {
  const idle = active > 0 && !isServed
  return [
    ...(idle ? [`no daemon runs, so no trigger starts anything; to start one: ${commandLine('serve')}`] : []),
    ...troublesWith(wrong).map(inWords),
  ]
}
