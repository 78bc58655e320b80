// A list that draws only its visible rows, which usually have one height.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { printing } from './printing.ts'

/** Browsers make no element higher than about 17 million pixels. A longer list scrolls faster than the hand. */
const HIGHEST = 10_000_000
/** Rows that are drawn above and below the visible ones. */
const SPARE = 12
/** Rows that are seen above the one that must be in sight, where rows may be high. */
const ABOVE = 3
/** Rows that are printed: some fifty pages. */
const MOST_PRINTED = 2_500

interface Box {
  class: string
  role: 'list' | 'region' | 'treegrid'
  tabIndex: number
  'aria-label': string
  'aria-rowcount'?: number
  'aria-activedescendant'?: string
  onCopy?(event: ClipboardEvent): void
  onPointerEnter?(): void
  onPointerLeave?(): void
  onFocusIn?(event: FocusEvent): void
  onFocusOut?(): void
  onClick?(event: MouseEvent): void
}

interface Props {
  count: number
  height: number
  row(index: number): ComponentChildren
  /** Keeps the end in sight as rows are added, until somebody scrolls up. */
  follow?: boolean
  onFollow?(follow: boolean): void
  /** A row that must be in sight. */
  show?: number
  /** Whether that row comes to the middle: what stands before and after it is seen, too, and a change of size hides it not. */
  middle?: boolean
  /** Whether rows may be higher than `height`. The scroll bar counts each as one. */
  grows?: boolean
  onRange?(first: number, last: number): void
  /** How far it is scrolled at first, and whoever wants to know how far it is later. */
  from?: number
  onScroll?(top: number): void
  /** Attributes of the box that scrolls. */
  box: Box
}

export function Virtual({
  count,
  height,
  row,
  follow = false,
  onFollow,
  show = -1,
  middle = false,
  grows = false,
  onRange,
  from = 0,
  onScroll,
  box,
}: Props) {
  const frame = useRef<HTMLDivElement>(null)
  const drawn = useRef<HTMLDivElement>(null)
  /** The row that is to be brought into sight once it is drawn. */
  const sought = useRef(-1)
  const top = useSignal(from)
  const seen = useSignal(600)

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      seen.value = entry!.contentRect.height
    })
    observer.observe(frame.current!)
    return () => observer.disconnect()
  }, [])
  const high = Math.min(HIGHEST, count * height)
  /** How far the list moves for a pixel of the scroll bar. */
  const speed = high < HIGHEST ? 1 : Math.max(1, (count * height - seen.value) / (high - seen.value))
  useLayoutEffect(() => {
    if (follow) frame.current!.scrollTop = high
  }, [follow, count])
  useLayoutEffect(() => {
    if (show < 0) return
    const { scrollTop, clientHeight } = frame.current!
    const offset = scrollTop * speed
    sought.current = grows ? show : -1
    if (grows) frame.current!.scrollTop = ((show - ABOVE) * height) / speed
    else if (middle) frame.current!.scrollTop = ((show + 0.5) * height - clientHeight / 2) / speed
    else if (show * height < offset) frame.current!.scrollTop = (show * height) / speed
    else if ((show + 1) * height > offset + clientHeight)
      frame.current!.scrollTop = ((show + 1) * height - clientHeight) / speed
  }, [show, grows])
  // After the row that must be in sight: whoever comes back sees what they saw.
  useLayoutEffect(() => {
    if (from > 0) frame.current!.scrollTop = from
  }, [])

  const offset = Math.min(top.value * speed, Math.max(0, count * height - seen.value))
  const whole = printing.value
  const first = whole ? 0 : Math.max(0, Math.floor(offset / height) - (grows ? 0 : SPARE))
  const last = Math.min(count, whole ? MOST_PRINTED : Math.ceil((offset + seen.value) / height) + SPARE)
  useEffect(() => onRange?.(first, last), [first, last])
  useLayoutEffect(() => {
    const row = drawn.current!.firstElementChild
    if (!grows || whole || !row) return
    // As much of the first row is out of sight as the scroll bar has passed of it.
    const passed = (offset / height - first) * row.getBoundingClientRect().height
    drawn.current!.style.transform = `translateY(${offset / speed - passed}px)`
    if (follow) frame.current!.scrollTop = frame.current!.scrollHeight
    // Elsewhere it stands at the top already. The end has no row of the scroll bar for what grew.
    if (offset < count * height - seen.value || sought.current < first || sought.current >= last) return
    drawn.current!.children[sought.current - first]?.scrollIntoView({ block: 'nearest' })
    sought.current = -1
  })

  return (
    <div
      {...box}
      class={`virtual ${box.class}`}
      ref={frame}
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        const up = scrollTop < top.peek()
        top.value = scrollTop
        onScroll?.(scrollTop)
        const atEnd = scrollTop + clientHeight >= scrollHeight - 2
        if (atEnd && !follow) onFollow?.(true)
        else if (!atEnd && up && follow) onFollow?.(false)
      }}
    >
      <div class="all" role="presentation" style={{ height: whole ? 'auto' : `${high}px` }}>
        <div
          class="drawn"
          ref={drawn}
          role="presentation"
          style={{ transform: whole ? 'none' : `translateY(${first * height - offset + offset / speed}px)` }}
        >
          {Array.from({ length: Math.max(0, last - first) }, (_, index) => row(first + index))}
        </div>
      </div>
      {whole && last < count && <p role="presentation">{(count - last).toLocaleString('en')} more are not printed.</p>}
    </div>
  )
}
