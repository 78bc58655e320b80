// The head of a group of lines, with which it is folded.

import type { Groups, Row } from './groups.ts'
import { NumberOf, type Paths, pathOf } from './line.tsx'
import type { Lines } from './lines.ts'
import { LineTime } from './times.tsx'

/** How far each level stands from the one above it, in pixels. */
export const STEP = 16

export function GroupHead({
  group,
  depth,
  groups,
  lines,
  paths,
  started,
  chosen,
}: {
  group: Exclude<Row['of'], number>
  depth: number
  groups: Groups
  lines: Lines
  paths: Paths | null
  started: number
  chosen: boolean
}) {
  const line = lines.at(group.first)
  if (!line) return <div class="line-group" />
  const isOpen = groups.isOpen(group)
  const fold = (event: KeyboardEvent) => {
    if (event.key === 'ArrowLeft') groups.set(group, false)
    else if (event.key === 'ArrowRight') groups.set(group, true)
    else return
    event.preventDefault()
  }
  return (
    <div class={`line-group ${chosen ? 'chosen' : ''}`}>
      {group.kind === 'group' ? <NumberOf line={line} /> : <span class="seq" />}
      <LineTime at={line.at} started={started} />
      <button
        type="button"
        aria-expanded={isOpen}
        style={{ marginLeft: `${depth * STEP}px` }}
        onClick={() => groups.set(group, !isOpen)}
        onKeyDown={fold}
      >
        {group.kind === 'phase' ? pathOf(line, paths) || group.title : group.title}{' '}
        <span class="quiet">{group.count.toLocaleString('en')}</span>
      </button>
    </div>
  )
}
