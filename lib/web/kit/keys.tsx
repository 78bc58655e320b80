// The keys of the page. They do nothing while the user types into a field.

import { signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { Check } from './fields.tsx'
import { go, to } from './route.ts'
import { TimeStyle } from './time.tsx'

const helped = signal(false)
export const showHelp = (): void => {
  helped.value = true
}

/** Whether what finds runs, pages and actions is open. */
export const palette = signal(false)
const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent)
export const PALETTE_KEY = isMac ? '⌘K' : 'Ctrl K'

const OFF = 'cadre-keys-off'
/** Whether single keys do something. Voice control types letters, so they can be turned off (WCAG 2.1.4). */
const isOn = signal(localStorage.getItem(OFF) === null)
function turn(on: boolean): void {
  isOn.value = on
  if (on) localStorage.removeItem(OFF)
  else localStorage.setItem(OFF, '1')
}
type Keys = Record<string, () => void>
/** The keys of all elements that are shown. */
const active = new Set<Keys>()

/** The keys work as soon as what they act on is drawn: an effect after the paint would lose keys on a busy machine. */
export function useKeys(keys: Keys): void {
  useLayoutEffect(() => {
    active.add(keys)
    return () => void active.delete(keys)
  })
}

/** `pages`: what `g` and another key open. */
export function listen(pages: Record<string, string>): void {
  let prefix = ''
  document.addEventListener('keydown', event => {
    const { target, key } = event
    if ((isMac ? event.metaKey : event.ctrlKey) && key.toLowerCase() === 'k' && !event.altKey && !event.shiftKey) {
      event.preventDefault()
      palette.value = true
      return
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (key === 'Escape') {
      if (target instanceof HTMLElement) target.blur()
      return
    }
    if (!isOn.value || (target instanceof HTMLElement && target.closest('input, textarea, select, dialog'))) return
    // Enter opens the element with the focus, not the chosen row.
    if (key === 'Enter' && target instanceof HTMLElement && target.closest('a, button, summary')) return
    const work =
      prefix === 'g' && pages[key] ? () => go(to(pages[key]!)) : [...active, common].find(keys => key in keys)?.[key]
    prefix = key
    if (!work) return
    event.preventDefault()
    work()
  })
}

const common: Keys = {
  '?': showHelp,
  '/': () => document.querySelector<HTMLElement>('[type=search]')?.focus(),
}

const LIST = [
  [PALETTE_KEY, 'a run, team, review, page or action'],
  ['/', 'search'],
  ['j k', 'next and previous row'],
  ['Enter', 'open the row'],
  ['1 – 6', 'the parts of a run'],
  ['f', 'the next failure'],
  ['← →', 'close and open a branch of the tree'],
] as const

export function Help({ pages }: { pages: Record<string, string> }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
  }, [helped.value])
  if (!helped.value) return null
  return (
    <dialog
      ref={dialog}
      aria-labelledby="keys"
      onClose={() => {
        helped.value = false
      }}
    >
      <h2 id="keys">Keys</h2>
      <dl class="keys">
        {[...LIST, ...Object.entries(pages).map(([key, page]) => [`g ${key}`, page]), ['?', 'this list']].map(
          ([key, what]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{what}</dd>
            </div>
          ),
        )}
      </dl>
      <Check value={isOn.value} set={turn}>
        Single keys work
      </Check>
      <TimeStyle />
      <button type="button" onClick={() => dialog.current?.close()}>
        Close
      </button>
    </dialog>
  )
}
