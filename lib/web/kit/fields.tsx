// The fields of forms and filters. Each has a value, and a function that sets another one.

import type { Signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'

/** A field with the value of a signal: `<Field label="Name" {...bound(name)} />`. */
export const bound = <T,>(signal: Signal<T>) => ({
  value: signal.value,
  set: (value: T): void => {
    signal.value = value
  },
})

/** A field with one property of the object in a signal. */
export const boundTo = <Name extends string>(signal: Signal<Partial<Record<Name, string>>>, name: Name) => ({
  value: signal.value[name] ?? '',
  set: (value: string): void => {
    signal.value = { ...signal.value, [name]: value }
  },
})

export function Field({
  label,
  value,
  set,
  children,
  ...more
}: {
  label: string
  value: string
  set(value: string): void
  children?: ComponentChildren
  type?: 'text' | 'password' | 'search' | 'number' | 'date' | 'datetime-local' | 'url'
  required?: boolean
  placeholder?: string
  pattern?: string
  title?: string
  autocomplete?: 'off' | 'username' | 'current-password' | 'new-password'
  maxLength?: number
  minLength?: number
  list?: string
}) {
  return (
    <label class="field grow">
      <span>{label}</span>
      <input
        type="text"
        autocomplete="off"
        spellcheck={false}
        {...(more as object)}
        value={value}
        onInput={event => set(event.currentTarget.value)}
      />
      {children}
    </label>
  )
}

/** Several lines. */
export function Area({
  label,
  value,
  set,
  class: more = '',
  ...others
}: {
  label: string
  value: string
  set(value: string): void
  class?: string
  rows: number
  placeholder?: string
}) {
  return (
    <label class={`field ${more}`}>
      <span>{label}</span>
      <textarea spellcheck={false} {...others} value={value} onInput={event => set(event.currentTarget.value)} />
    </label>
  )
}

/** The values of a select, each with its title. */
type Choices<T extends string> = readonly (readonly [value: T, title: string])[]

export function Select<T extends string>({
  label,
  value,
  set,
  of,
}: {
  label: string
  value: T
  set(value: T): void
  of: Choices<NoInfer<T>>
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={event => set(event.currentTarget.value as T)}>
        {of.map(([each, title]) => (
          <option key={each} value={each}>
            {title}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Names to choose from, below the title `none`. The chosen name is among them even if it is unknown. */
export const nameChoices = (none: string, names: readonly string[], chosen: string): Choices<string> => [
  ['', none],
  ...[...new Set(chosen === '' ? names : [...names, chosen])].map(name => [name, name] as const),
]

export function Check({
  value,
  set,
  class: more = '',
  children,
}: {
  value: boolean
  set(value: boolean): void
  class?: string
  children: ComponentChildren
}) {
  return (
    <label class={`check ${more}`}>
      <input type="checkbox" checked={value} onChange={event => set(event.currentTarget.checked)} /> {children}
    </label>
  )
}

/** Some of several words, in the order in which they stand. */
export function Checks<T extends string>({
  label,
  value,
  set,
  of,
}: {
  label: string
  value: readonly T[]
  set(value: T[]): void
  of: Choices<T>
}) {
  return (
    <fieldset class="choices full-width">
      <legend class="small quiet">{label}</legend>
      {of.map(([each, title]) => (
        <Check
          key={each}
          value={value.includes(each)}
          set={wanted => set(of.map(([name]) => name).filter(name => (name === each ? wanted : value.includes(name))))}
        >
          {title}
        </Check>
      ))}
    </fieldset>
  )
}

/** What happens when a form is sent. A browser would load the page again. */
export const handleSubmit = (send: () => unknown) => (event: Event) => {
  event.preventDefault()
  void send()
}
