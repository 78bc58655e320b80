// Whether the files of folders still say what was enabled of their `triggers`. Firings ask too; this tells people before the
// next occasion comes.

import { isLasting } from '../../error.ts'
import { changedSince } from '../../firing/declared.ts'
import type { Trigger } from '../../firing/trigger.ts'
import type { Daemon } from '../runs/daemon.ts'
import { loadTeam } from '../runs/start-run.ts'
import { whichTeam } from './at-home.ts'
import { noteFile } from './problem.ts'
import type { Tables } from './tables.ts'

/** How often files are looked at. */
export const FILES_EVERY_MS = 30_000

export async function lookAtFile(daemon: Daemon, { triggers, now }: Tables, trigger: Trigger): Promise<void> {
  const text = await teamProblem(daemon, trigger)
  const was = trigger.problem?.reason === 'team' ? trigger.problem.text : null
  if (text === was) return
  await daemon.engine.commit(() => {
    if (triggers.get(trigger.id)) noteFile(daemon, triggers, trigger, text, now())
  })
}

/** What is said of a trigger whose file says something else, or of a file that cannot be read. */
export async function teamProblem(daemon: Daemon, trigger: Trigger): Promise<string | null> {
  try {
    const bundle = await loadTeam(daemon, whichTeam(trigger.spec.team))
    return changedSince(trigger, bundle.team(bundle.root))?.detail ?? null
  } catch (error) {
    if (!isLasting(error)) throw error
    return error.message
  }
}
