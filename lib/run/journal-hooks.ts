// How the journal, which knows only units and groups, has steps taken, reports recorded and effects carried out.

import { isDiskError } from '../../db/open.ts'
import type { Log } from '../log/log.ts'
import type { Outbox } from './effects/effects.ts'
import { noteChanges } from './search/search.ts'
import { errorOf, type Machine, textOf } from './steps/steps.ts'
import type { JournalHooks, Lived, Unit } from './store/store.ts'

export function journalHooks(
  machine: Machine,
  outbox: Outbox | undefined,
  lived: Lived,
  log: Log,
  committed: () => void,
): JournalHooks {
  return {
    next: machine.next,
    hasNext: machine.hasNext,
    beforeUnit: machine.beforeUnit,
    afterUnit: machine.afterUnit,
    unitUndone: machine.unitUndone,
    unitFailed: (unit, error) => failTree(machine, unit, error),
    beforeCommit() {
      lived.keepSoon()
      noteChanges(machine.store.db, machine.changedRuns)
      outbox?.record(machine.changes, ({ run, kind }, error) => {
        if (isDiskError(error)) throw error
        log.error('a change cannot be reported to the hub', { run: run.id, kind, error: textOf(error) })
      })
    },
    afterCommit: committed,
    afterRollback: machine.groupUndone,
  }
}

/** A change failed twice: its tree ends, so that nobody waits for it forever. */
function failTree(machine: Machine, { root }: Unit, thrown: unknown): void {
  if (root === null) return
  const { code, message } = errorOf(thrown)
  const prefix = code === 'internal' ? 'a fault of the engine ended the run: ' : 'the run cannot be continued: '
  machine.abandonTree(root, { code: 'internal', message: prefix + message, run_id: root })
}
