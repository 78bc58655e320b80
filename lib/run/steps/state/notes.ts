// What units note while they are applied: effects, which are carried out after the commit, and changed rows, of which
// followers, the hub and the index of searches are informed. The notes of a unit that is undone are dropped, and those of
// applied units are kept for their group.

import type { EventName, Team } from '../../../team/team.ts'
import type { LiveRun } from '../../core/core.ts'
import type { ChangedRun, Store } from '../../store/store.ts'
import type { Effect } from './effects.ts'
import type { Asks, World } from './world.ts'

/** A row that changed: a row of a phase, or of the run itself when `position` is null. */
export interface Change {
  run: ChangedRun
  team: Team
  position: number | null
  kind: 'run' | 'phase' | 'review' | 'receipt' | 'delivery'
  /** The entry of a receipt. */
  entry?: string
}

export class Notes {
  readonly #store: Store
  readonly #world: World
  // Of the unit that is being applied
  #unitEffects: Effect[] = []
  #unitChanges: Change[] = []
  #unitRuns: number[] = []
  #touched = false
  // Of the group
  #effects: Effect[] = []
  readonly #changes = new Map<string, Change>()
  readonly #changedRuns = new Set<number>()
  /** The trees of the group's units, including a unit that a full disk interrupted. */
  readonly #roots = new Set<string>()

  constructor(store: Store, world: World) {
    this.#store = store
    this.#world = world
  }

  after(effect: Effect): void {
    this.#unitEffects.push(effect)
    this.#touched = true
  }

  /** The row of a run, or of one of its phases, changed. */
  changed(live: LiveRun, position: number | null = null): void {
    const kind = position === null ? 'run' : 'phase'
    this.add({ run: live.row, team: live.team, position, kind })
  }

  add(change: Change): void {
    this.#touched = true
    if (change.kind === 'run') this.#unitRuns.push(change.run.number)
    if (change.run.synced === 1 || this.#world.followed()) this.#unitChanges.push(change)
  }

  /**
   * Notes changes of runs that are not in memory. Runs come first, because the hub accepts no phase of a run that it
   * does not know.
   */
  changedRows(
    runs: readonly ChangedRun[],
    phases: readonly { run_id: string; position: number }[],
    kind: 'phase' | 'review' = 'phase',
  ): void {
    const known = new Map<string, ChangedRun>(runs.map(run => [run.id, run]))
    // Also where a team cannot be read, so that nobody else is informed.
    for (const { number } of runs) this.#unitRuns.push(number)
    const teamOf = (run: ChangedRun) => this.#world.bundle(run.bundle_id).team(run.team_key)
    for (const run of runs) this.add({ run, team: teamOf(run), position: null, kind: 'run' })
    for (const { run_id, position } of phases) {
      const run = known.get(run_id) ?? this.#store.runs.get(run_id)!
      this.add({ run, team: teamOf(run), position, kind })
    }
  }

  /** An event of a run, for its listeners. */
  event(live: LiveRun, event: EventName, position: number | null, asks?: Asks): void {
    const mayBeTold = event === 'on_fail' && !live.parent
    if (live.team.listeners.length === 0 && !mayBeTold) return
    if (this.#world.event(live, event, position, asks)) this.after({ kind: 'deliver', runId: live.id })
  }

  /** Called before the state of the tree `root` in memory changes. */
  touch(root: string): void {
    this.#touched = true
    this.#roots.add(root)
  }

  /** Whether the unit has changed rows or memory. */
  get touched(): boolean {
    return this.#touched
  }

  // Units and groups

  /** Called before a unit of the tree `root` is applied. */
  startUnit(root: string | null): void {
    this.#unitEffects = []
    this.#unitChanges = []
    this.#unitRuns = []
    this.#touched = false
    if (root !== null) this.#roots.add(root)
  }

  /** Called after the unit was applied. Its notes now belong to the group. */
  keepUnit(): void {
    for (const effect of this.#unitEffects) this.#effects.push(effect)
    for (const change of this.#unitChanges) {
      this.#changes.set(`${change.kind}:${change.run.id}:${change.position}:${change.entry ?? ''}`, change)
    }
    for (const number of this.#unitRuns) this.#changedRuns.add(number)
  }

  /** The changes of the group so far. */
  get changes(): Iterable<Change> {
    return this.#changes.values()
  }

  /** The numbers of the runs whose rows the group changed so far. */
  get changedRuns(): ReadonlySet<number> {
    return this.#changedRuns
  }

  /** The notes of a group that is durable. */
  takeGroup(): { effects: Effect[]; changes: Change[] } {
    const taken = { effects: this.#effects, changes: [...this.#changes.values()] }
    this.#effects = []
    this.#changes.clear()
    this.#changedRuns.clear()
    this.#roots.clear()
    return taken
  }

  /** Drops the notes of a group that was undone, and returns the trees whose memory may no longer match the rows. */
  dropGroup(): string[] {
    const roots = [...this.#roots]
    this.#effects = []
    this.#changes.clear()
    this.#changedRuns.clear()
    this.#roots.clear()
    return roots
  }
}
