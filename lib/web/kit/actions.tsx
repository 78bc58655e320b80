// Forms, questions before what cannot be undone, and secrets that are shown once.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Failure, handle, useWork } from './parts.tsx'

/** A form with one button. */
export function Ask({
  label,
  submit,
  work,
  children,
}: {
  label: string
  submit: string
  work(): Promise<unknown>
  children: ComponentChildren
}) {
  const { busy, error, run } = useWork()
  return (
    <form class="card" aria-label={label} onSubmit={handle(() => run(work))}>
      <h2>{label}</h2>
      <div class="row fields-row">
        {children}
        <button type="submit" disabled={busy}>
          {submit}
        </button>
      </div>
      <Failure of={error} />
    </form>
  )
}

/** A button for what cannot be undone: it asks once more in its place. */
export function Sure({ children, question, work }: { children: string; question: string; work(): Promise<unknown> }) {
  const asked = useSignal(false)
  const { busy, error, run } = useWork()
  const confirm = useRef<HTMLButtonElement>(null)
  // The button that had the focus is gone.
  useLayoutEffect(() => confirm.current?.focus(), [asked.value])
  if (!asked.value) {
    return (
      <button
        type="button"
        class="plain"
        onClick={() => {
          asked.value = true
        }}
      >
        {children}
      </button>
    )
  }
  return (
    <fieldset class="sure">
      <legend class="small">{question}</legend>
      <button
        type="button"
        class="danger"
        ref={confirm}
        disabled={busy}
        onClick={() =>
          run(async () => {
            await work()
            asked.value = false
          })
        }
      >
        {children}
      </button>
      <button
        type="button"
        class="plain"
        onClick={() => {
          asked.value = false
        }}
      >
        No
      </button>
      <Failure of={error} />
    </fieldset>
  )
}

/** A secret or a link that can be copied. It is not shown again. */
export function Once({ title, text, children }: { title: string; text: string; children?: ComponentChildren }) {
  const copied = useSignal(false)
  const field = useRef<HTMLInputElement>(null)
  const copy = async () => {
    field.current?.select()
    // Without TLS a browser has no clipboard for pages; the text is selected then.
    await navigator.clipboard?.writeText(text).catch(() => {})
    copied.value = true
  }
  return (
    <div class="notice once" role="status">
      <p>
        <strong>{title}</strong> It is shown only now.
      </p>
      <div class="row">
        <input ref={field} class="grow secret" readOnly aria-label={title} value={text} />
        <button type="button" onClick={copy}>
          {copied.value ? 'Copied' : 'Copy'}
        </button>
      </div>
      {children}
    </div>
  )
}
