// What a reader chose for all pages of this browser, kept in its local storage.

import { type Signal, signal } from '@preact/signals'

/** One of several words; without a choice, the first of them. */
export function preference<T extends string>(name: string, [first, ...others]: readonly [T, ...T[]]) {
  const key = `cadre-${name}`
  const kept = localStorage.getItem(key)
  const value: Signal<T> = signal(others.find(each => each === kept) ?? first)
  return {
    get value(): T {
      return value.value
    },
    set(chosen: T): void {
      value.value = chosen
      if (chosen === first) localStorage.removeItem(key)
      else localStorage.setItem(key, chosen)
    },
  }
}
