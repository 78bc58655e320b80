// The graph of a team: its phases, and what each waits for. Every phase is a link, in the order of the file.

import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { Empty } from '../kit/parts.tsx'
import { State } from '../kit/state.tsx'
import { type Drawn, layout, type Node, WIDTH } from './graph.ts'

/** More lines than this are not drawn, because nobody could follow them. */
const MOST_LINES = 3_000

/** The box scrolls, so it must be reachable with the keyboard. */
const BOX = { role: 'region', tabIndex: 0, 'aria-label': 'Graph of the phases' } as const

export interface Drawable extends Node {
  about: string
  /** The state in a run. */
  state?: string
  /** What people should see of it before all else, in words: it is drawn with a mark. */
  mark?: string
  href?: string
}

export function Graph({ of }: { of: readonly Drawable[] }) {
  const shape = JSON.stringify(of.map(({ name, after }) => [name, after]))
  const graph = useMemo(() => (linesOf(of) > MOST_LINES ? null : layout(of)), [shape])
  const box = useRef<HTMLDivElement>(null)
  // Most graphs are narrow at the top and at the end, so the middle shows most of them.
  useLayoutEffect(() => {
    if (box.current) box.current.scrollLeft = (box.current.scrollWidth - box.current.clientWidth) / 2
  }, [graph])
  if (of.length === 0) return null
  if (!graph) {
    return (
      <Empty>
        <p>The team has too many dependencies to draw.</p>
      </Empty>
    )
  }
  const boxes = new Map(graph.boxes.map(box => [box.name, box]))
  return (
    <div class="graph" ref={box} {...BOX}>
      <div class="drawing" style={{ width: `${graph.width}px`, height: `${graph.height}px` }}>
        <svg width={graph.width} height={graph.height} aria-hidden="true">
          {graph.lines.map((line, index) => (
            <path key={index} d={pathOf(line)} />
          ))}
        </svg>
        {of.map(({ name, about, state, mark, href }) => {
          const { x, y } = boxes.get(name)!
          const style = { left: `${x}px`, top: `${y}px`, width: `${WIDTH}px` }
          const inside = (
            <>
              {state !== undefined && <State of={state} bare />}
              {mark !== undefined && (
                <span class="mark" role="img" aria-label={mark}>
                  ↗
                </span>
              )}
              <span class="name">{name}</span>
              <span class="quiet small about">{about}</span>
            </>
          )
          return href === undefined ? (
            <span key={name} class="node" style={style} title={mark === undefined ? name : `${name} ${mark}`}>
              {inside}
            </span>
          ) : (
            <a key={name} class="node" style={style} href={href} title={name}>
              {inside}
            </a>
          )
        })}
      </div>
    </div>
  )
}

const linesOf = (nodes: readonly Node[]): number => nodes.reduce((sum, { after }) => sum + after.length, 0)

/** A curve that leaves and reaches phases straight down. */
function pathOf([first, ...rest]: Drawn['lines'][number]): string {
  let at = first!
  let path = `M${at.x} ${at.y}`
  for (const next of rest) {
    const middle = (at.y + next.y) / 2
    path += `C${at.x} ${middle} ${next.x} ${middle} ${next.x} ${next.y}`
    at = next
  }
  return path
}
