// What failed in the runs below a run and was passed over there, or is no part of the chain that leads to its failure. The
// failures are asked for by their state, and a tree key says through which phases a run was reached, so that a tree of
// many runs costs one scan of an index.

import type { Bundle, Phase } from '../../team/team.ts'
import { oneLine } from '../../text/one-line.ts'
import type { FailedItems } from '../../wire/records/run-records.ts'
import { TREE_KEY_STEP } from '../../wire/states.ts'
import { branchKey, parse, type RunError, type RunRow } from '../core/core.ts'
import type { Store } from '../store/store.ts'
import { Causes } from './failed-items.ts'

/** Maximum number of maps, and of phases of items, that are told. */
const PLACES = 20
/** The length of the part of a tree key that names a phase. */
const PHASE = branchKey('', 0).length

export interface FailuresBelow {
  items: FailedItems[]
  /** Phases of sub-runs that are below no map, each with its error. */
  passedOver: string[]
}

/** A phase on the way down, and the key of the run that it started. */
interface Level {
  phase: Phase
  key: string
}

interface Place {
  /** The phases down to the innermost map. */
  toMap: readonly Level[]
  /** The phases from there to the one that was passed over; none where the item failed. */
  inside: readonly string[]
  causes: Causes
}

/** `told` are the runs whose own failures are told already. */
export function failuresBelow(store: Store, run: RunRow, bundle: Bundle, told: ReadonlySet<string>): FailuresBelow {
  const places = new Map<string, Place>()
  const passedOver: string[] = []
  const below = new Below(store, run, bundle)

  const add = (levels: readonly Level[], inside: readonly string[], error: string | null): void => {
    const toMap = levels.slice(0, levels.findLastIndex(({ phase }) => phase.type === 'map') + 1)
    const within = [...levels.slice(toMap.length).map(({ phase }) => phase.name), ...inside]
    const text = parse<RunError>(error)?.message ?? 'failed'
    if (toMap.length === 0) return void passedOver.push(`phase ${within.join('/')} (${oneLine(text)})`)
    const id = JSON.stringify([namesOf(toMap), within])
    const place = places.get(id) ?? { toMap, inside: within, causes: new Causes() }
    if (places.size < PLACES) places.set(id, place)
    const keys = toMap.filter(({ phase }) => phase.type === 'map').map(({ key }) => below.nameOf(key))
    place.causes.add(keys.at(-1)!, error, keys.join('/'))
  }

  for (const { parent_id, tree_key, error } of store.runs.failedItemsBelow(run.root_id, run.tree_key)) {
    const levels = told.has(parent_id!) ? null : below.levelsOf(tree_key)
    if (levels) add(levels, [], error)
  }
  for (const { run_id, tree_key, position, error } of store.phases.failedBelow(run.root_id, run.tree_key)) {
    const levels = told.has(run_id) ? null : below.levelsOf(tree_key)
    const phase = levels && below.phasesAt(levels)[position]!
    if (phase?.onFailure === 'continue') add(levels!, [phase.name], error)
  }
  const items = [...places.values()].map(({ toMap, inside, causes }) => ({
    run_id: run.id,
    phase: namesOf(toMap).join('/'),
    ...(inside.length > 0 && { passed_over: inside.join('/') }),
    total: store.phases.totalOfMaps(run.root_id, below.patternOf(toMap), toMap.at(-1)!.phase.index),
    failed: causes.count,
    causes: causes.list(),
  }))
  return { items, passedOver }
}

const namesOf = (levels: readonly Level[]): string[] => levels.map(({ phase }) => phase.name)

/** What the tree keys of the runs below a run mean. */
class Below {
  readonly #store: Store
  readonly #run: RunRow
  readonly #bundle: Bundle
  readonly #runs = new Map<string, { name: string; isCounted: boolean }>()

  constructor(store: Store, run: RunRow, bundle: Bundle) {
    this.#store = store
    this.#run = run
    this.#bundle = bundle
  }

  /** The levels of a run; null if it is of an earlier turn, or of an item that is gone, or below such a run. */
  levelsOf(key: string): Level[] | null {
    const levels: Level[] = []
    for (let at = this.#run.tree_key.length; at < key.length; at += TREE_KEY_STEP) {
      const phase = this.phasesAt(levels)[Number.parseInt(key.slice(at, at + PHASE), 36)]!
      const level = { phase, key: key.slice(0, at + TREE_KEY_STEP) }
      if (!this.#read(level).isCounted) return null
      levels.push(level)
    }
    return levels
  }

  phasesAt(levels: readonly Level[]): readonly Phase[] {
    const above = levels.at(-1)?.phase
    const key = above === undefined ? this.#run.team_key : (above as { team: string }).team
    return this.#bundle.team(key).phases
  }

  nameOf(key: string): string {
    return this.#runs.get(key)!.name
  }

  /** A pattern for the tree keys of all runs that have the last of these phases. */
  patternOf(levels: readonly Level[]): string {
    const above = levels
      .slice(0, -1)
      .map(({ phase }) => `${branchKey('', phase.index)}${'?'.repeat(TREE_KEY_STEP - PHASE)}`)
    return `${this.#run.tree_key}${above.join('')}`
  }

  #read({ phase, key }: Level) {
    const known = this.#runs.get(key)
    if (known) return known
    const { phases, runs, turns } = this.#store
    const { run_name, parent_id, item } = runs.atKey(this.#run.root_id, key)!
    const end =
      phase.type === 'map' ? phases.total(parent_id!, phase.index) : (turns.last(parent_id!, phase.index)?.turn ?? 1)
    const isCounted = phase.type === 'map' ? end === null || item! < end : item === end! - 1
    const read = { name: run_name ?? '', isCounted }
    this.#runs.set(key, read)
    return read
  }
}
