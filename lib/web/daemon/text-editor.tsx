// A text area with the numbers of its lines. It is the control of the platform, so that keyboards, screen readers and phones
// work as people know them: the Tab key leaves it.

import type { RefObject } from 'preact'
import { useRef } from 'preact/hooks'

interface TextEditorProps {
  label: string
  value: string
  set(text: string): void
  /** The lines with mistakes, from 1. */
  bad: ReadonlySet<number>
  area: RefObject<HTMLTextAreaElement | null>
}

export function TextEditor({ label, value, set, bad, area }: TextEditorProps) {
  const numbers = useRef<HTMLDivElement>(null)
  const count = value.split('\n').length
  return (
    <div class="text-editor">
      <div class="numbers" aria-hidden="true" ref={numbers}>
        {Array.from({ length: count }, (_, at) => (
          <span key={at} class={bad.has(at + 1) ? 'bad' : ''}>
            {at + 1}
          </span>
        ))}
      </div>
      <textarea
        aria-label={label}
        aria-invalid={bad.size > 0}
        ref={area}
        value={value}
        rows={Math.min(Math.max(count + 1, 12), 32)}
        wrap="off"
        spellcheck={false}
        autocapitalize="off"
        onInput={event => set(event.currentTarget.value)}
        onScroll={event => {
          if (numbers.current) numbers.current.scrollTop = event.currentTarget.scrollTop
        }}
      />
    </div>
  )
}
