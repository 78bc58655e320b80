// The bars of a timeline. On the scale of the whole run, a bar shows when a phase or run worked, when it waited, and when it
// waited for a person.

import { durationOf, now } from '../kit/time.tsx'

export interface Span {
  from: number
  until: number | null
}

/** The scale of all bars of a list. */
export interface Scale {
  from: number
  until: number
}

/** A part of a bar: an attempt with its state, a `wait`, or a `person` who is asked. */
export interface Part extends Span {
  kind: string
  title?: string
}

export const scaleOf = ({ from, until }: Span): Scale => ({ from, until: Math.max(from + 1, until ?? now.value) })

export function Bar({ parts, scale }: { parts: readonly Part[]; scale: Scale }) {
  const position = (span: Span) => {
    const length = scale.until - scale.from
    const start = Math.min(1, Math.max(0, (span.from - scale.from) / length))
    const end = Math.min(1, Math.max(start, ((span.until ?? now.value) - scale.from) / length))
    return { left: `${start * 100}%`, width: `${(end - start) * 100}%` }
  }
  return (
    <span class="bar" aria-hidden="true">
      {parts.map((part, index) => (
        <span key={index} class={part.kind} style={position(part)} title={part.title} />
      ))}
    </span>
  )
}

/** The meaning of those parts of bars that do not have the colour of a state. */
export function Legend({ of }: { of: readonly (readonly Part[])[] }) {
  const kinds = new Set(of.flat().map(({ kind }) => kind))
  return (
    <span class="legend quiet" aria-hidden="true">
      {Object.entries(LABELS).map(
        ([kind, meaning]) =>
          kinds.has(kind) && (
            <span key={kind}>
              <span class="bar">
                <span class={kind} />
              </span>
              {meaning}
            </span>
          ),
      )}
    </span>
  )
}

const LABELS: Record<string, string> = { wait: 'waits', person: 'a person is asked' }

/** A bar with one part: of a run whose attempts are not shown. */
export const singlePart = (from: number | null, until: number | null, state: string): Part[] =>
  from === null ? [] : [{ from, until, kind: state }]

/** In seconds. */
const STEPS = [
  0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 43_200,
  86_400, 604_800,
]
const MOST_TICKS = 4

/** The times of a scale, as durations since its beginning. */
export function Axis({ scale }: { scale: Scale }) {
  const length = scale.until - scale.from
  const step = 1_000 * (STEPS.find(seconds => length / (1_000 * seconds) <= MOST_TICKS) ?? length / MOST_TICKS / 1_000)
  const count = length < 40 ? 0 : Math.floor(length / step)
  return (
    <span class="axis" aria-hidden="true">
      <span style={{ left: 0 }}>0</span>
      {Array.from({ length: count }, (_, index) => (index + 1) * step)
        .filter(at => at / length < 0.9)
        .map(at => (
          <span key={at} style={{ left: `${(at / length) * 100}%` }}>
            {durationOf(at).replace(/\.0(?= s$)| 0 (s|min)$/, '')}
          </span>
        ))}
    </span>
  )
}
