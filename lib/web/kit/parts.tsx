// Elements of several pages: errors, hints for empty lists, JSON, tables of documents, links to other systems, and the form
// for the local token. `useLoaded` reads the data of a page.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { pieces } from './ansi.ts'
import { command, keepToken, Refusal, token } from './api.ts'
import { bound, Field, handleSubmit } from './fields.tsx'

/** Why actions failed: such an error takes the focus, because somebody waits for it. */
export const actionErrors = new WeakSet<object>()

export function Failure({ of }: { of: unknown }) {
  const notice = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    if (actionErrors.has(of as object)) notice.current?.focus()
  }, [of])
  if (of === null || of === undefined) return null
  const refusal = of instanceof Refusal ? of : null
  return (
    <div class="notice failed" role="alert" tabIndex={-1} ref={notice}>
      <p>{of instanceof Error ? of.message : String(of)}</p>
      {refusal && refusal.details.length > 0 && (
        <ul>
          {refusal.details.map(({ path, message }) => (
            <li key={path + message}>
              <code>{path}</code> {message}
            </li>
          ))}
        </ul>
      )}
      {refusal?.code === 'unauthorized' && <TokenForm />}
    </div>
  )
}

/** A form for the local token, shown where a call needs it and this tab has none. */
export function TokenForm() {
  const text = useSignal('')
  if (token.value !== null) return null
  return (
    <form class="row" onSubmit={handleSubmit(() => text.value.trim() !== '' && keepToken(text.value.trim()))}>
      <p>
        Settings and decisions need the local token. Open the page with <code>{command} dashboard</code>, or paste the
        content of <code>token</code> in the home of the daemon.
      </p>
      <Field label="Local token" type="password" {...bound(text)} />
      <button type="submit">Use it</button>
    </form>
  )
}

const LONG = 400

/** A text of others. Of a long one the beginning is shown, and a button shows the rest. */
export function LongText({ text }: { text: string }) {
  const open = useSignal(false)
  const isCut = !open.value && text.length > LONG
  return (
    <span class="wrap">
      {isCut ? `${text.slice(0, LONG)}… ` : text}
      {isCut && (
        <button
          type="button"
          class="plain more"
          onClick={() => {
            open.value = true
          }}
        >
          Show all
        </button>
      )}
    </span>
  )
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <div class="empty">{children}</div>
}

/** A table of a document. It scrolls by itself where the window is narrower. */
export function ScrollTable({ head, children }: { head: readonly ComponentChildren[]; children: ComponentChildren }) {
  return (
    <div class="wide">
      <table>
        <thead>
          <tr>
            {head.map((cell, index) => (
              <th key={index} scope="col">
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}

export function Json({ of }: { of: unknown }) {
  return <pre class="json">{JSON.stringify(of, null, 2)}</pre>
}

/** A text with the colours that terminals would give it. */
export function Coloured({ text }: { text: string }) {
  return (
    <>
      {pieces(text).map((piece, index) => (
        <span key={index} class={piece.class}>
          {piece.text}
        </span>
      ))}
    </>
  )
}

interface Loaded<T> {
  data: T | null
  error: unknown
  again(): void
}

/** After this long a reply is not waited for any more: its connection may have died without a word. */
const SILENT_MS = 60_000

/**
 * The reply of `ask`, read again when `key` changes, and every `every` milliseconds while the page is visible. It is asked
 * only while `isWanted`, and not while the same question still waits for its reply, unless that has not come for long.
 */
export function useLoaded<T>(key: string, ask: () => Promise<T>, every = 0, isWanted = true): Loaded<T> {
  const data = useSignal<T | null>(null)
  const error = useSignal<unknown>(null)
  const count = useSignal(0)
  const wanted = useRef(isWanted)
  wanted.current = isWanted
  const reload = useRef(() => {})
  useEffect(() => {
    data.value = null
    error.value = null
  }, [key])
  useEffect(() => {
    let live = true
    /** When the question was asked whose reply is waited for; null: none is. */
    let asked: number | null = null
    const load = async () => {
      const now = performance.now()
      if (!wanted.current || (asked !== null && now - asked < SILENT_MS)) return
      asked = now
      const isLatest = () => live && asked === now
      try {
        const found = await ask()
        if (!isLatest()) return
        // An equal reply must not draw the page again.
        if (JSON.stringify(found) !== JSON.stringify(data.peek())) data.value = found
        error.value = null
      } catch (thrown) {
        if (isLatest()) error.value = thrown
      } finally {
        if (asked === now) asked = null
      }
    }
    reload.current = load
    void load()
    const timer = every > 0 ? setInterval(() => !document.hidden && void load(), every) : undefined
    return () => {
      live = false
      clearInterval(timer)
    }
  }, [key, count.value, token.value])
  useEffect(() => reload.current(), [isWanted])
  return { data: data.value, error: error.value, again: () => void count.value++ }
}

/** A link to another system. An address that is not of the web stays text. */
export function ExternalLink({ url, children }: { url: string | null; children: ComponentChildren }) {
  const safe = url !== null && /^https?:$/.test(URL.parse(url)?.protocol ?? '')
  if (!safe) return <>{children}</>
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  )
}
