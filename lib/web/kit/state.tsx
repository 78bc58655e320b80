// The state of a run, a phase or a write: a colour, a shape and a word. Each of them is enough to tell states apart.

const RING = <circle cx="8" cy="8" r="6" fill="none" />
const DISC = <circle cx="8" cy="8" r="7" class="solid" />

const SHAPES: Record<string, preact.JSX.Element> = {
  queued: <circle cx="8" cy="8" r="6" fill="none" stroke-dasharray="2.5 2.2" />,
  pending: <circle cx="8" cy="8" r="6" fill="none" stroke-dasharray="2.5 2.2" />,
  running: <path d="M8 2a6 6 0 1 1-6 6" fill="none" class="turns" />,
  awaiting_input: (
    <g>
      <path d="M8 .8 15.2 8 8 15.2.8 8Z" class="solid" />
      <path d="M8 4.6v4M8 11v.4" class="on" />
    </g>
  ),
  completed: (
    <g>
      {DISC}
      <path d="m4.8 8.2 2.2 2.2 4.2-4.6" class="on" />
    </g>
  ),
  failed: (
    <g>
      <path d="M4.9.8h6.2l4.1 4.1v6.2l-4.1 4.1H4.9L.8 11.1V4.9Z" class="solid" />
      <path d="m5.4 5.4 5.2 5.2m0-5.2-5.2 5.2" class="on" />
    </g>
  ),
  cancelled: (
    <g>
      {RING}
      <path d="m4 12 8-8" />
    </g>
  ),
  skipped: <path d="m3 4 4 4-4 4m6-8 4 4-4 4" fill="none" />,
  refused: (
    <g>
      {RING}
      <path d="M4.6 8h6.8" />
    </g>
  ),
  interrupted: (
    <g>
      {RING}
      <path d="M6.4 5.6v4.8m3.2-4.8v4.8" />
    </g>
  ),
}

SHAPES.crashed = SHAPES.interrupted!

export const wordOf = (state: string): string => (state === 'awaiting_input' ? 'waits for a person' : state)

/** A badge on something that completed although failures in it were tolerated. Nothing where there are none. */
export function Tolerated({ count }: { count: number | null | undefined }) {
  if (!count) return null
  return (
    <>
      <span class="badge" title="These failures were tolerated">
        {count.toLocaleString('en')} failed<span class="unseen">, tolerated</span>
      </span>{' '}
    </>
  )
}

/** `bare` shows the word only to screen readers. `word` names the state of something other than a run. */
export function State({ of, bare = false, word = wordOf(of) }: { of: string; bare?: boolean; word?: string }) {
  // A state that only a newer program knows has no shape here, and its name must not become a class.
  const shape = Object.hasOwn(SHAPES, of) ? SHAPES[of] : undefined
  return (
    <span class={shape ? `state ${of}` : 'state pending'} title={bare ? word : undefined}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        {shape ?? RING}
      </svg>
      <span class={bare ? 'unseen' : ''}>{word}</span>
    </span>
  )
}
