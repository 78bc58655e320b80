// The groups of a log, which can be folded: the phases of its runs, their commands, and what commands put between lines
// `::group::NAME` and `::endgroup::`. The lines of a group stand together, also where other phases spoke meanwhile.

import { signal } from '@preact/signals'
import type { Lines } from './lines.ts'

const BEGIN = '::group::'
const END = '::endgroup::'
/** A line is counted in every group around it, so a log that never ends its groups would cost more with each. */
const DEEPEST = 20

export interface Group {
  kind: 'phase' | 'command' | 'group'
  title: string
  parent: Group | null
  /** Its first line. Of a `group` it is the one that begins it. */
  first: number
  /** Its lines and groups, in their order. */
  items: (number | Group)[]
  /** How many lines it has at every depth. */
  count: number
}

/** A line by its index, or the head of a group. `depth`: how many heads stand above it. */
export interface Row {
  of: number | Group
  depth: number
}

/** The groups of a phase that have not ended, the innermost last. */
interface Open {
  phase: Group
  inner: Group[]
  /** How many groups were begun below the deepest one, and have not ended. Their lines stand in that one. */
  tooDeep: number
}

export class Groups {
  /** The groups of the phases, in the order of their first lines. */
  readonly phases: Group[] = []
  /** Which groups people folded or unfolded, and what they did with all. */
  readonly #folds = signal<{ all: boolean | null; own: ReadonlyMap<Group, boolean> }>({ all: null, own: new Map() })
  readonly #lines: Lines
  readonly #open = new Map<string, Open>()
  readonly #groupOf = new Map<number, Group>()
  #read = 0

  constructor(lines: Lines) {
    this.#lines = lines
  }

  /** Takes the shown lines up to this number of them, each once. `indexOf` gives their places in the log. */
  read(count: number, indexOf: (shown: number) => number): void {
    for (; this.#read < count; this.#read++) this.#add(indexOf(this.#read))
  }

  #add(index: number): void {
    const { run_id, phase, stream, command } = this.#lines.originOf(index)
    const key = `${run_id} ${phase}`
    let open = this.#open.get(key)
    if (!open) {
      open = { phase: groupOf('phase', phase ?? 'the run', null, index), inner: [], tooDeep: 0 }
      this.phases.push(open.phase)
      this.#open.set(key, open)
    }
    const { inner } = open
    const innermost = () => inner.at(-1) ?? open.phase
    const begin = (kind: Group['kind'], title: string) => {
      const group = groupOf(kind, title, innermost(), index)
      innermost().items.push(group)
      inner.push(group)
    }
    // What cadre says itself stands in the phase, and a group that nobody closed ends with its command.
    const now = inner[0]?.kind === 'command' ? inner[0].title : null
    if (stream === 'log' || now !== command) inner.length = 0
    if (stream !== 'log' && command !== null && inner.length === 0) begin('command', command)
    const text = stream === 'log' ? '' : this.#lines.textOf(index)
    const isBegin = text.startsWith(BEGIN)
    if (inner.length === 0) open.tooDeep = 0
    if (isBegin && inner.length >= DEEPEST) open.tooDeep++
    if (isBegin && inner.length < DEEPEST) begin('group', text.slice(BEGIN.length).trim())
    else innermost().items.push(index)
    const group = innermost()
    this.#groupOf.set(index, group)
    for (let each: Group | null = group; each; each = each.parent) each.count++
    if (!text.startsWith(END)) return
    if (open.tooDeep > 0) open.tooDeep--
    else if (group.kind === 'group') inner.pop()
  }

  /** Groups of commands begin folded, as their writers know them from other logs. */
  isOpen(group: Group): boolean {
    const { all, own } = this.#folds.value
    return own.get(group) ?? all ?? group.kind !== 'group'
  }

  set(group: Group, open: boolean): void {
    const { all, own } = this.#folds.peek()
    this.#folds.value = { all, own: new Map(own).set(group, open) }
  }

  setAll(open: boolean): void {
    this.#folds.value = { all: open, own: new Map() }
  }

  /** Unfolds what a line stands in. */
  reveal(index: number): void {
    const { all, own } = this.#folds.peek()
    const opened = new Map(own)
    let group = this.#groupOf.get(index) ?? null
    // The line that begins a group is its head, which is seen without its lines.
    if (group?.kind === 'group' && group.first === index) group = group.parent
    for (; group; group = group.parent) opened.set(group, true)
    this.#folds.value = { all, own: opened }
  }

  /** What is shown. A single phase has no head, and neither has the single command of a phase. */
  rows(): Row[] {
    const rows: Row[] = []
    const add = (group: Group, depth: number, hasHead: boolean) => {
      if (hasHead) rows.push({ of: group, depth })
      if (hasHead && !this.isOpen(group)) return
      const inside = hasHead ? depth + 1 : depth
      const commands = group.items.filter(item => typeof item !== 'number' && item.kind === 'command').length
      for (const item of group.items) {
        if (typeof item === 'number') rows.push({ of: item, depth: inside })
        else add(item, inside, item.kind === 'group' || commands > 1)
      }
    }
    for (const phase of this.phases) add(phase, 0, this.phases.length > 1)
    return rows
  }
}

const groupOf = (kind: Group['kind'], title: string, parent: Group | null, first: number): Group => ({
  ...{ kind, title, parent, first },
  items: [],
  count: 0,
})

/** The row of a line, -1 where it is folded. */
export const rowOf = (rows: readonly Row[], index: number): number =>
  rows.findIndex(({ of }) => of === index || (typeof of !== 'number' && of.kind === 'group' && of.first === index))
