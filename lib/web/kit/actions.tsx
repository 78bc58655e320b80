// Actions: the only way in which a page changes something. An action has a name, may ask a question, sends its calls once at
// a time, is busy until they are answered, and shows why it failed. Buttons, forms, menus and keys all start actions.

import { signal, useSignal } from '@preact/signals'
import type { ComponentChildren, RefObject } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { DispatchRun } from '../../wire/calls/dispatch.ts'
import { StartRun } from '../../wire/calls/runs.ts'
import { type Send, send } from './api.ts'
import { lost } from './connection.ts'
import { Copyable, CopyCommand } from './copyable.tsx'
import { bound, Field, handleSubmit, Refused } from './fields.tsx'
import { actionErrors, Failure } from './parts.tsx'

/** What an action does. Only `send`, which it is given, makes calls that change something. */
export type Work = (send: Send) => Promise<unknown>

/** Calls that take an idempotency key: whoever repeats one gets the run of the first. */
const KEYED: readonly string[] = [StartRun.path, DispatchRun.path]

/** What was done last, if it can be taken back. */
const lastDone = signal<{ what: string; undo: Work } | null>(null)

/** How many actions send something now. */
let sending = 0
function count(by: 1 | -1): void {
  sending += by
  document.documentElement.toggleAttribute('data-sending', sending > 0)
}

/** Does one work at a time, and keeps the error of the last one. */
export function useAction() {
  const busy = useSignal(false)
  const error = useSignal<unknown>(null)
  const keyOf = useOnce()
  const sendOnce: Send = (call, body) =>
    send(call, KEYED.includes(call.path) ? Object.assign({}, body, { idempotency_key: keyOf(body as object) }) : body)
  const run = async (work: Work): Promise<void> => {
    if (busy.peek()) return
    busy.value = true
    error.value = null
    lastDone.value = null
    count(1)
    try {
      await work(sendOnce)
    } catch (thrown) {
      error.value = thrown
      actionErrors.add(thrown as object)
    }
    count(-1)
    busy.value = false
    keepFocus()
  }
  // A form is off while it is sent, and while the server does not answer.
  return { busy: busy.value || lost.value !== null, sending: busy.value, error: error.value, run }
}

/** Where the element with the focus is gone, the page has it. */
export function keepFocus(): void {
  requestAnimationFrame(() => {
    if (document.activeElement === document.body) focusMain()
  })
}

export function focusMain(): void {
  const main = document.querySelector('main')
  if (!main) return
  main.tabIndex = -1
  main.focus({ preventScroll: true })
}

/**
 * The idempotency key of a request: the same one for the same request as long as its form is shown, so that a second click
 * starts nothing again. Without TLS a browser makes no UUIDs.
 */
function useOnce(): (request: object) => string {
  const last = useRef({ request: '', key: '' })
  return request => {
    const text = JSON.stringify(request)
    if (text !== last.current.request) {
      const key = Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0'))
      last.current = { request: text, key: key.join('') }
    }
    return last.current.key
  }
}

/** An action whose button, or whose form, is shown. */
interface ShownAction {
  element: HTMLElement
  /** The default is the text of the button. */
  name?: string
  about?: string | undefined
  forbidden?: string | null
  start(): void
}

/** For whoever starts an action by its name. */
export const shownActions = new Set<ShownAction>()

/** `find` is called once the element is there. */
function useShown(find: () => ShownAction | null): void {
  useLayoutEffect(() => {
    const shown = find()
    if (!shown) return
    shownActions.add(shown)
    return () => void shownActions.delete(shown)
  })
}

/** How long the second button of a question does nothing, so that a double click does not answer it. */
const ARMED_MS = 300

interface Action {
  /** What it sends, or otherwise does. */
  send: Work
  /** Is called after it has succeeded. */
  done?(): unknown
  /** What it asks first: it names the thing, and what stops. Without a question it is sent at once. */
  question?: string
  /** What the second button says: it names what happens. The default is the name of the action. */
  confirm?: string
  /** The name that has to be typed first, of what cannot be had back. */
  typed?: string
  /** Whether the question may be asked, which looks at the fields of a form. */
  may?(): boolean
  /** Takes it back, where the server can, and what it says then was done. */
  undo?: { what: string; send: Work }
  /** The command that does the same. */
  command?: string
  /** Why the reader may not, and who may. */
  forbidden?: string | null
  plain?: boolean
  /** Its name. */
  children: ComponentChildren
}

/** A button that starts an action. One that asks becomes a question with a second button. */
export function ActionButton(action: Action) {
  const { question, forbidden = null, plain = question !== undefined, done, undo, command, children } = action
  const asking = useSignal(false)
  const { busy, sending, error, run } = useAction()
  const button = useRef<HTMLButtonElement>(null)
  const wasAsked = useRef(false)
  // The button that had the focus is gone.
  useLayoutEffect(() => {
    if (wasAsked.current && !asking.value) button.current?.focus()
    wasAsked.current = asking.value
  }, [asking.value])
  useShown(() => button.current && { element: button.current, about: question, forbidden, start: () => start() })
  if (forbidden !== null) return <Forbidden plain={plain} why={forbidden} name={children} button={button} />
  const act = () =>
    run(async send => {
      await action.send(send)
      await done?.()
      asking.value = false
      if (undo) lastDone.value = { what: undo.what, undo: send => undo.send(send).then(done) }
    })
  const start = () => {
    if (busy) return
    if (!(action.may?.() ?? true)) return
    if (question === undefined) void act()
    else asking.value = true
  }
  if (asking.value) {
    return (
      <Question
        {...action}
        question={question!}
        busy={busy}
        sending={sending}
        error={error}
        yes={act}
        no={() => {
          asking.value = false
        }}
      />
    )
  }
  return (
    <>
      <button
        type="button"
        class={plain ? 'plain' : ''}
        ref={button}
        aria-disabled={busy}
        aria-busy={sending || undefined}
        onClick={start}
      >
        {children}
      </button>
      {command !== undefined && <CopyCommand text={command} />}
      <Failure of={error} />
    </>
  )
}

/** Says what was done last, and takes it back. It is in the frame, because what the action was about may be gone. */
export function Undo() {
  const { busy, error, run } = useAction()
  const last = useRef(lastDone.value)
  last.current = lastDone.value ?? (busy || error !== null ? last.current : null)
  const { current } = last
  if (!current) return null
  return (
    <div class="notice row" role="status">
      {current.what}
      <button
        type="button"
        class="plain"
        aria-disabled={busy}
        aria-busy={busy || undefined}
        onClick={() => run(current.undo)}
      >
        Undo
      </button>
      <Failure of={error} />
    </div>
  )
}

/** Shown to those who may not, so that they know that there is such a thing. It says whom to ask. */
function Forbidden({
  plain,
  why,
  name,
  button,
}: {
  plain: boolean
  why: string
  name: ComponentChildren
  button: RefObject<HTMLButtonElement | null>
}) {
  const told = useSignal(false)
  return (
    <>
      <button
        type="button"
        class={plain ? 'plain' : ''}
        ref={button}
        aria-disabled
        title={why}
        onClick={() => {
          told.value = true
        }}
      >
        {name}
      </button>
      {told.value && (
        <span class="quiet small" role="status">
          {why}.
        </span>
      )}
    </>
  )
}

/** The second button takes no click at first, and no key that is still held from before. */
function Question({
  question,
  confirm,
  typed,
  command,
  children,
  busy,
  sending,
  error,
  yes,
  no,
}: Action & { question: string; busy: boolean; sending: boolean; error: unknown; yes(): void; no(): void }) {
  const armed = useSignal(false)
  const name = useSignal('')
  const whole = useRef<HTMLFieldSetElement>(null)
  useLayoutEffect(() => {
    whole.current?.querySelector<HTMLElement>('input, button')?.focus()
    const timer = setTimeout(() => {
      armed.value = true
    }, ARMED_MS)
    return () => clearTimeout(timer)
  }, [])
  const isIdle = busy || !armed.value || (typed !== undefined && name.value.trim() !== typed)
  return (
    <fieldset class="confirm" ref={whole} onKeyDown={event => event.key === 'Escape' && no()}>
      <legend class="small">{question}</legend>
      {typed !== undefined && <Field label={`Type ${typed}`} {...bound(name)} />}
      <button
        type="button"
        class="danger"
        aria-disabled={isIdle}
        aria-busy={sending || undefined}
        onKeyDown={event => event.repeat && event.preventDefault()}
        onClick={() => !isIdle && yes()}
      >
        {confirm ?? children}
      </button>
      <button type="button" class="plain" disabled={sending} onClick={no}>
        No
      </button>
      {command !== undefined && <Copyable title="The command that does the same" text={command} />}
      <Failure of={error} />
    </fieldset>
  )
}

/** A card with a title, fields and one button. */
export function FormCard({
  label,
  submit,
  send,
  children,
}: {
  label: string
  submit: string
  send: Work
  children: ComponentChildren
}) {
  const { busy, sending, error, run } = useAction()
  const form = useRef<HTMLFormElement>(null)
  useShown(() => {
    const first = form.current?.querySelector<HTMLElement>('input, select, textarea, button')
    return first ? { element: first, name: label, start() {} } : null
  })
  return (
    <form class="card" aria-label={label} ref={form} onSubmit={handleSubmit(() => run(send))}>
      <h2>{label}</h2>
      <div class="row fields-row">
        <Refused.Provider value={error}>{children}</Refused.Provider>
        <button type="submit" disabled={busy} aria-busy={sending || undefined}>
          {submit}
        </button>
      </div>
      <Failure of={error} />
    </form>
  )
}
