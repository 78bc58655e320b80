// Keys for the whole page. They do nothing while somebody types.

import { signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { go, to } from './route.ts'

const PLACES: Record<string, string> = {
  r: 'runs',
  v: 'reviews',
  n: 'start',
  a: 'agents',
  w: 'workspaces',
  s: 'settings',
}

const helped = signal(false)
type Keys = Record<string, () => void>
/** The keys of everything that is shown. */
const shown = new Set<Keys>()

/** The keys work as soon as what they act on is drawn: an effect after the paint would lose keys on a busy machine. */
export function useKeys(keys: Keys): void {
  useLayoutEffect(() => {
    shown.add(keys)
    return () => void shown.delete(keys)
  })
}

export function listen(): void {
  let prefix = ''
  document.addEventListener('keydown', event => {
    const { target, key } = event
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (key === 'Escape') {
      if (target instanceof HTMLElement) target.blur()
      return
    }
    if (target instanceof HTMLElement && target.matches('input, textarea, select')) return
    const work =
      prefix === 'g' && PLACES[key] ? () => go(to(PLACES[key]!)) : [...shown, common].find(keys => key in keys)?.[key]
    prefix = key
    if (!work) return
    event.preventDefault()
    work()
  })
}

const common: Keys = {
  '?': () => {
    helped.value = true
  },
  '/': () => document.querySelector<HTMLElement>('[type=search]')?.focus(),
}

const LIST = [
  ['/', 'search'],
  ['j k', 'next and previous row'],
  ['Enter', 'open the row'],
  ['← →', 'close and open a branch of the tree'],
  ['g r', 'runs'],
  ['g v', 'reviews'],
  ['g n', 'start a run'],
  ['g a', 'agents'],
  ['g w', 'workspaces'],
  ['g s', 'settings'],
  ['?', 'this list'],
] as const

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    if (helped.value) dialog.current?.showModal()
  }, [helped.value])
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
        {LIST.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={() => dialog.current?.close()}>
        Close
      </button>
    </dialog>
  )
}
