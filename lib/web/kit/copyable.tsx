// Texts to copy: commands, links, and secrets, which are shown once.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'

/** A secret or a link that can be copied. It is not shown again. */
export function CopyableSecret({
  title,
  text,
  children,
}: {
  title: string
  text: string
  children?: ComponentChildren
}) {
  return (
    <div class="notice shown-once" role="status">
      <p>
        <strong>{title}</strong> It is shown only now.
      </p>
      <Copyable title={title} text={text} />
      {children}
    </div>
  )
}

export function Copyable({ title, text }: { title: string; text: string }) {
  const copied = useSignal(false)
  const field = useRef<HTMLInputElement>(null)
  const copy = async () => {
    field.current?.select()
    // Without TLS a browser has no clipboard for pages; the text is selected then.
    await navigator.clipboard?.writeText(text).catch(() => {})
    copied.value = true
  }
  return (
    <div class="row">
      <input ref={field} class="grow secret" readOnly autocomplete="off" aria-label={title} value={text} />
      <button type="button" onClick={copy}>
        {copied.value ? 'Copied' : 'Copy'}
      </button>
    </div>
  )
}

/** A button that copies the command which does the same as the button beside it. */
export function CopyCommand({ text }: { text: string }) {
  const copied = useSignal(false)
  const copy = async () => {
    await navigator.clipboard?.writeText(text).catch(() => {})
    copied.value = true
  }
  return (
    <button type="button" class="plain small" title={text} onClick={copy}>
      {copied.value ? 'Copied' : 'Copy command'}
    </button>
  )
}
