// The machine holds the runs that have not ended, and produces the units that follow from events. A fact is applied to
// rows and memory inside a unit of the journal and schedules steps (agenda.ts). `Machine` passes one unit after the
// other to the journal, and reads memory from the rows again when a unit is undone.

import { type LiveRun, type RunError, Slots } from '../../core/core.ts'
import type { Store, Unit } from '../../store/store.ts'
import { Agenda } from '../state/agenda.ts'
import type { Effect } from '../state/effects.ts'
import { type Change, Notes } from '../state/notes.ts'
import { forgetResults } from '../state/scope.ts'
import { type EngineState, liveIn } from '../state/state.ts'
import type { World } from '../state/world.ts'
import { loadTree } from './load.ts'
import { reuseSlots, takeSteps, useSlotTurn } from './step.ts'
import { abandonTree } from './whole-tree.ts'

export class Machine implements EngineState {
  readonly store: Store
  readonly world: World
  readonly lives = new Map<string, LiveRun>()
  readonly queued = new Set<string>()
  readonly slots: Slots<LiveRun>
  readonly agenda = new Agenda()
  readonly notes: Notes
  /**
   * Trees whose memory no longer agrees with their rows after a rollback: they are read again before their next unit.
   */
  readonly #stale = new Set<string>()
  #slotsTurn = false

  constructor(store: Store, world: World, slots: number) {
    this.store = store
    this.world = world
    this.slots = new Slots(slots)
    this.notes = new Notes(store, world)
  }

  // What the journal calls

  readonly next = (): Unit | null => {
    for (const root of this.#stale) return this.#steps(root)
    // Steps and slots alternate, so that a tree with thousands of steps does not keep others from getting slots.
    this.#slotsTurn = !this.#slotsTurn
    const root = this.agenda.first
    if (root === null) return this.#turn()
    return (this.#slotsTurn ? this.#turn() : null) ?? this.#steps(root)
  }

  #steps(root: string): Unit {
    return {
      root,
      apply: () => {
        this.takeSteps(root)
        reuseSlots(this, root)
      },
    }
  }

  #turn(): Unit | null {
    const live = this.#mayTurn() ? this.slots.next() : null
    if (!live) return null
    // This only gives the run its turn. The slot is taken when its phase starts.
    this.slots.release()
    return { root: live.root, apply: () => useSlotTurn(this, live.id) }
  }

  readonly hasNext = (): boolean => this.#stale.size > 0 || !this.agenda.isEmpty || this.#mayTurn()

  /** Calls `paused` last, because this is called very often and `paused` looks outside. */
  #mayTurn(): boolean {
    return this.slots.hasTurn && !this.world.paused()
  }

  readonly beforeUnit = ({ root }: Unit): void => {
    this.notes.startUnit(root)
    this.agenda.startUnit(root)
    if (root === null || !this.#stale.delete(root)) return
    loadTree(this, root)
    if (this.agenda.hasThrown(root)) this.takeSteps(root)
  }

  readonly afterUnit = ({ root }: Unit): void => {
    this.notes.keepUnit()
    if (root !== null) this.agenda.forgive(root)
  }

  readonly unitUndone = ({ root, request }: Unit): void => {
    forgetResults(this.store)
    // A request that was refused has changed nothing.
    if (root === null || (request && !this.notes.touched && this.lives.has(root))) return
    this.#stale.add(root)
    this.agenda.threw(root)
  }

  readonly groupUndone = (): void => {
    forgetResults(this.store)
    for (const root of this.notes.dropGroup()) this.#stale.add(root)
  }

  // What the engine calls

  /** The changes of the group so far. Read before the commit. */
  get changes(): Iterable<Change> {
    return this.notes.changes
  }

  /** The numbers of the runs whose rows the group changed so far. */
  get changedRuns(): ReadonlySet<number> {
    return this.notes.changedRuns
  }

  /** The effects and changes of the group, after it is durable. */
  takeCommitted(): { effects: Effect[]; changes: Change[] } {
    return this.notes.takeGroup()
  }

  /** Takes the scheduled steps of a tree, as many as fit into one unit. */
  takeSteps(root: string): void {
    takeSteps(this, root)
  }

  /** Ends a tree by changing only its rows, after a fault that prevents steps from ending it. */
  abandonTree(root: string, error: RunError): void {
    this.#stale.delete(root)
    this.agenda.forgive(root)
    abandonTree(this, root, error)
  }

  /** The run of a fact about an attempt; null when the phase has ended or is in another attempt. */
  live(runId: string, position: number, attempt: number): LiveRun | null {
    return liveIn(this, runId, position, attempt)
  }
}
