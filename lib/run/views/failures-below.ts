// What failed in the runs below a run and was passed over there, or is no part of the chain that leads to its failure. An
// index has the runs with failures, and a tree key says through which phases a run was reached, so the cost is that of the
// failures, however many runs the tree has.

import type { Bundle, Phase } from '../../team/team.ts'
import { oneLine } from '../../text/one-line.ts'
import { TREE_KEY_STEP } from '../../wire/states.ts'
import type { FailuresBelow } from '../../wire/why/facts.ts'
import { branchKey, parse, type RunError, type RunRow } from '../core/core.ts'
import type { Store } from '../store/store.ts'
import { Causes } from './failed-items.ts'

/** Maximum number of maps, and of phases of items, that are told. */
const PLACES = 20
/** The lengths of the parts of a tree key that name a phase, and an item of it. */
const PHASE = branchKey('', 0).length
const ITEM = TREE_KEY_STEP - PHASE

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
  const placesOfBranches = new Map<string, Place>()
  const passedOver: string[] = []
  const below = new Below(store, run, bundle)

  const placeOf = (levels: readonly Level[], inside: readonly string[]): Place => {
    const toMap = levels.slice(0, levels.findLastIndex(({ phase }) => phase.type === 'map') + 1)
    const within = [...namesOf(levels.slice(toMap.length)), ...inside]
    const id = JSON.stringify([namesOf(toMap), within])
    const place = places.get(id) ?? { toMap, inside: within, causes: new Causes() }
    if (toMap.length > 0 && places.size < PLACES) places.set(id, place)
    return place
  }
  const add = (levels: readonly Level[], inside: readonly string[], error: string | null): void => {
    // The items of a map have one place.
    const branch = JSON.stringify([branchOf(levels.at(-1)!.key), inside])
    const place = placesOfBranches.get(branch) ?? placeOf(levels, inside)
    placesOfBranches.set(branch, place)
    const maps = levels.slice(0, place.toMap.length).filter(({ phase }) => phase.type === 'map')
    const keys = maps.map(({ key }) => below.nameOf(key))
    if (keys.length > 0) return place.causes.add(keys.at(-1)!, error, keys.join('/'))
    passedOver.push(`phase ${place.inside.join('/')} (${oneLine(parse<RunError>(error)?.message ?? 'failed')})`)
  }

  for (const { tree_key, error, ...row } of store.runs.failedItemsBelow(run.root_id, run.tree_key)) {
    const levels = told.has(row.parent_id!) ? null : below.levelsOf(tree_key, row)
    if (levels) add(levels, [], error)
  }
  for (const { run_id, tree_key, position, error, ...row } of store.phases.failedBelow(run.root_id, run.tree_key)) {
    const levels = told.has(run_id) ? null : below.levelsOf(tree_key, row)
    const phase = levels && below.phasesAt(levels)[position]!
    if (phase?.onFailure === 'continue') add(levels!, [phase.name], error)
  }
  const items = [...places.values()].map(({ toMap, inside, causes }) => ({
    run_id: run.id,
    phase: namesOf(toMap).join('/'),
    ...(inside.length > 0 && { passed_over: inside.join('/') }),
    total: below.totalOf(toMap),
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
  readonly #levels = new Map<string, readonly Level[] | null>()
  readonly #names = new Map<string, string>()
  /** By branch: how many items a map has, or which turn of a team phase was the last. */
  readonly #ends = new Map<string, number | null>()
  readonly #totals = new Map<string, number>()

  constructor(store: Store, run: RunRow, bundle: Bundle) {
    this.#store = store
    this.#run = run
    this.#bundle = bundle
  }

  /** The levels of a run; null if it is of an earlier turn, or of an item that is gone, or below such a run. */
  levelsOf(key: string, row = this.#rowOf(key)): readonly Level[] | null {
    const above = this.#levelsAbove(key.slice(0, -TREE_KEY_STEP))
    if (!above) return null
    const phase = this.phasesAt(above)[Number.parseInt(key.slice(-TREE_KEY_STEP, -ITEM), 36)]!
    const end = this.#endOf(phase, key, row.parent_id!)
    const isCounted = phase.type === 'map' ? end === null || row.item! < end : row.item === end! - 1
    this.#names.set(key, row.run_name ?? '')
    return isCounted ? [...above, { phase, key }] : null
  }

  /** Read once for all runs below. */
  #levelsAbove(key: string): readonly Level[] | null {
    const known = this.#levels.get(key)
    if (known !== undefined) return known
    const levels = key === this.#run.tree_key ? [] : this.levelsOf(key)
    this.#levels.set(key, levels)
    return levels
  }

  #rowOf(key: string): Pick<RunRow, 'run_name' | 'parent_id' | 'item'> {
    return this.#store.runs.atKey(this.#run.root_id, key)!
  }

  phasesAt(levels: readonly Level[]): readonly Phase[] {
    const above = levels.at(-1)?.phase
    const key = above === undefined ? this.#run.team_key : (above as { team: string }).team
    return this.#bundle.team(key).phases
  }

  nameOf(key: string): string {
    return this.#names.get(key)!
  }

  /** How many items a map has that is the last of these phases, in all items of the maps above it. */
  totalOf(levels: readonly Level[]): number {
    const { phase, key } = levels.at(-1)!
    const above = levels.slice(0, -1)
    if (!above.some(({ phase }) => phase.type === 'map')) return this.#ends.get(branchOf(key)) ?? 0
    const steps = above.map(({ phase }) => `${branchKey('', phase.index)}${'?'.repeat(ITEM)}`)
    const pattern = `${this.#run.tree_key}${steps.join('')}`
    const branch = branchKey(pattern, phase.index)
    const known = this.#totals.get(branch)
    if (known !== undefined) return known
    const total = this.#store.phases.totalOfMaps(this.#run.root_id, pattern, phase.index)
    this.#totals.set(branch, total)
    return total
  }

  /** Read once for all items of a map, whose row may be large. */
  #endOf({ type, index }: Phase, key: string, runId: string): number | null {
    const branch = branchOf(key)
    const known = this.#ends.get(branch)
    if (known !== undefined) return known
    const { phases, turns } = this.#store
    const end = type === 'map' ? phases.total(runId, index) : (turns.last(runId, index)?.turn ?? 1)
    this.#ends.set(branch, end)
    return end
  }
}

const branchOf = (key: string): string => key.slice(0, -ITEM)
