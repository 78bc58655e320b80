// The plan of a resume on a terminal: what stays, what runs again, and what becomes of the writes to other systems.

import { line, type Printable } from '../../../text/printable.ts'
import type { Fate, MapBelow, PlannedWrite, ResumePlan } from '../../../wire/records/resume-plan.ts'
import { nameOfWrite } from '../../../wire/records/words.ts'

/** How many writes of a kind are named. */
const WRITES = 10

const FATE: Record<Fate, string> = {
  kept: 'Written, and its phase stays:',
  skipped: 'Already written, and not sent again:',
  asked: 'cadre looks these up before it sends anything, and asks a person if the other system cannot say:',
  person: 'A person is asked before the command runs again:',
  sent: 'Sent again, or the rest of it:',
}

export function resumePlanLines({ kept, repeated, writes, writes_more }: ResumePlan): Printable[] {
  const stays = kept.map(({ phase, state, reason }) =>
    state === 'completed' ? phase : `${phase} (${[state, reason].filter(Boolean).join(', ')})`,
  )
  const again = repeated.map(({ phase, whole, renewed, runs }) => {
    const notes = [whole && runs ? 'whole' : '', renewed ? 'items evaluated again' : '']
    const shown = notes.filter(Boolean).join('; ')
    return shown ? `${phase} (${shown})` : phase
  })
  const items = repeated.flatMap(({ phase, runs, maps }) => [...(runs ? [{ phase, ...runs }] : []), ...maps])
  const ofFate = (fate: Fate) => writes.filter(write => write.fate === fate)
  return [
    line`Stays: ${stays.join(', ') || 'nothing'}`,
    line`Runs again: ${again.join(', ') || 'nothing'}`,
    ...items.flatMap(itemsLine),
    ...(Object.keys(FATE) as Fate[]).flatMap(fate => {
      const found = ofFate(fate)
      return found.length === 0 ? [] : [line`${FATE[fate]} ${writesText(found)}`]
    }),
    ...(writes_more > 0 ? [line`And ${writes_more} more writes.`] : []),
  ]
}

/** The first of some writes, with their addresses. */
export function writesText(writes: readonly Omit<PlannedWrite, 'fate'>[]): string {
  const shown = writes.slice(0, WRITES).map(write => {
    const at = write.url ?? write.id
    return at ? `${nameOfWrite(write)} (${at})` : nameOfWrite(write)
  })
  const more = writes.length > WRITES ? `, and ${writes.length - WRITES} more` : ''
  return `${shown.join('; ')}${more}`
}

function itemsLine({ phase, kept, repeated, names }: MapBelow): Printable[] {
  // The one sub-run of a team phase has no key.
  if (kept === 0 && names.length === 0) return []
  const named = names.length > 0 ? `: ${names.join(', ')}${names.length < repeated ? ', …' : ''}` : ''
  return [line`${phase}: ${repeated} of ${kept + repeated} items run again${named}`]
}
