// A bar of a timeline: when something was at work, on the scale of a whole run, and when it waited for a person.

import { now } from './time.tsx'

export interface Span {
  from: number
  until: number | null
}

/** The scale on which all bars of a list stand. */
export interface Scale {
  from: number
  until: number
}

export const scaleOf = ({ from, until }: Span): Scale => ({ from, until: Math.max(from + 1, until ?? now.value) })

export function Bar({
  of,
  state,
  scale,
  waits = [],
}: {
  of: Span | null
  state: string
  scale: Scale
  waits?: Span[]
}) {
  const place = (span: Span) => {
    const length = scale.until - scale.from
    const start = Math.min(1, Math.max(0, (span.from - scale.from) / length))
    const end = Math.min(1, Math.max(start, ((span.until ?? now.value) - scale.from) / length))
    return { left: `${start * 100}%`, width: `${(end - start) * 100}%` }
  }
  return (
    <span class="bar" aria-hidden="true">
      {of && <span class={`work ${state}`} style={place(of)} />}
      {waits.map(wait => (
        <span key={wait.from} class="person" style={place(wait)} title="waited for a person" />
      ))}
    </span>
  )
}
