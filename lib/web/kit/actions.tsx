// Buttons and forms that change something. They start an action once at a time and show why it failed. An action that
// cannot be undone needs a second click, and a new secret is shown once.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { handleSubmit, Refused } from './fields.tsx'
import { Failure } from './parts.tsx'

/** Runs one action at a time, and keeps the error of the last one. */
export function useAction() {
  const busy = useSignal(false)
  const error = useSignal<unknown>(null)
  const run = async (action: () => Promise<unknown>): Promise<void> => {
    if (busy.peek()) return
    busy.value = true
    error.value = null
    try {
      await action()
    } catch (thrown) {
      error.value = thrown
    }
    busy.value = false
  }
  return { busy: busy.value, error: error.value, run }
}

interface Action {
  action(): Promise<unknown>
  /** Is called after the action has succeeded. */
  done?(): unknown
}

export function ActionButton({
  action,
  done,
  children,
  plain = false,
}: Action & { children: ComponentChildren; plain?: boolean }) {
  const { busy, error, run } = useAction()
  return (
    <>
      <button
        type="button"
        class={plain ? 'plain' : ''}
        disabled={busy}
        onClick={() =>
          run(async () => {
            await action()
            await done?.()
          })
        }
      >
        {children}
      </button>
      <Failure of={error} />
    </>
  )
}

/** A button for an action that cannot be undone: it becomes a question with a second button, which starts the action. */
export function ConfirmButton({ action, done, question, children }: Action & { question: string; children: string }) {
  const asking = useSignal(false)
  const { busy, error, run } = useAction()
  const confirm = useRef<HTMLButtonElement>(null)
  // The button that had the focus is gone.
  useLayoutEffect(() => confirm.current?.focus(), [asking.value])
  if (!asking.value) {
    return (
      <button
        type="button"
        class="plain"
        onClick={() => {
          asking.value = true
        }}
      >
        {children}
      </button>
    )
  }
  return (
    <fieldset class="confirm">
      <legend class="small">{question}</legend>
      <button
        type="button"
        class="danger"
        ref={confirm}
        disabled={busy}
        onClick={() =>
          run(async () => {
            await action()
            await done?.()
            asking.value = false
          })
        }
      >
        {children}
      </button>
      <button
        type="button"
        class="plain"
        onClick={() => {
          asking.value = false
        }}
      >
        No
      </button>
      <Failure of={error} />
    </fieldset>
  )
}

/** A card with a title, fields and one button. */
export function FormCard({
  label,
  submit,
  action,
  children,
}: {
  label: string
  submit: string
  action(): Promise<unknown>
  children: ComponentChildren
}) {
  const { busy, error, run } = useAction()
  return (
    <form class="card" aria-label={label} onSubmit={handleSubmit(() => run(action))}>
      <h2>{label}</h2>
      <div class="row fields-row">
        <Refused.Provider value={error}>{children}</Refused.Provider>
        <button type="submit" disabled={busy}>
          {submit}
        </button>
      </div>
      <Failure of={error} />
    </form>
  )
}

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
