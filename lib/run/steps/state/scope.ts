// The values that expressions of a run can name. A result is read from its row when it is named, column by column.
// Memory therefore holds no results, and expressions have the same value before and after a restart.

import type { FileRecord } from '../../../agent/agent-context.ts'
import type { Json } from '../../../json.ts'
import { Recent } from '../../../recent.ts'
import type { PhaseValue, Scope } from '../../../team/team.ts'
import { type LiveRun, parse, type RunError } from '../../core/core.ts'
import type { Store } from '../../store/store.ts'
import type { World } from './world.ts'

/** What is needed to read a scope. */
export interface Reading {
  store: Store
  world: Pick<World, 'stateDir'>
}

/** How many results are kept: the inputs of a map name the same results for every item. */
const RECENT = 8
const recents = new WeakMap<Store, Recent<string, PhaseValue>>()

/** Forgets the results that were kept, because the change that recorded them may have been undone. */
export function forgetResults(store: Store): void {
  recents.delete(store)
}

export function scopeOf(
  { store }: Pick<Reading, 'store'>,
  live: LiveRun,
  item?: { value: Json; index: number },
): Scope {
  const { row, team } = live
  const recent = recents.get(store) ?? new Recent(RECENT)
  recents.set(store, recent)
  return {
    ...givenOf(live),
    run: { id: row.id, name: row.run_name, started_at: row.started_at, environment: row.environment },
    phase(name) {
      const position = team.position(name)
      const { state, reason, attempt } = live.phases[position]!
      const key = `${row.id}:${row.attempt}:${position}:${attempt}:${state}:${reason}`
      return recent.get(key) ?? recent.set(key, phaseValue(store, row.id, position, state, reason))
    },
    ...(item && { item: item.value, index: item.index }),
  }
}

/** The inputs. A map in place passes its item as one of them, which is a name of its own in expressions. */
function givenOf({ team, inputs: all }: LiveRun): Pick<Scope, 'inputs' | 'item' | 'index'> {
  if (!team.inPlace) return { inputs: all }
  const { item = null, index = null, ...inputs } = all
  return { inputs, item, index: Number(index) }
}

/** A phase as expressions see it. Each part is read once, when it is named. */
function phaseValue(store: Store, runId: string, position: number, state: string, reason: string | null): PhaseValue {
  let row: ReturnType<Store['phases']['result']> | undefined
  let data: Json | undefined
  let files: FileRecord[] | undefined
  const read = () => {
    row ??= store.phases.result(runId, position)
    return row
  }
  // A phase that waits for a person may have a result stored for later, which does not count before the phase has
  // ended.
  const hasResult = state === 'completed' || state === 'failed'
  // The expression library reads only own properties, so this is not a class.
  return {
    state,
    reason,
    get text() {
      return (hasResult && read().text) || ''
    },
    get data() {
      if (data === undefined) data = hasResult ? parse<Json>(read().data) : null
      return data
    },
    get files() {
      files ??= (hasResult && parse<FileRecord[]>(read().files)) || []
      return files
    },
    get error() {
      const error = parse<RunError>(read().error)
      return error && { code: error.code, message: error.message }
    },
  }
}
