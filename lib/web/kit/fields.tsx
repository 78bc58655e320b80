// The fields of forms and filters. Each has a value, and a function that sets another one.

import type { Signal } from '@preact/signals'
import { type ComponentChildren, createContext } from 'preact'
import { useContext, useId } from 'preact/hooks'
import { Refusal } from './api.ts'

/** A field with the value of a signal: `<Field label="Name" {...bound(name)} />`. */
export const bound = <T,>(signal: Signal<T>) => ({
  value: signal.value,
  set: (value: T): void => {
    signal.value = value
  },
})

/** A field with one property of the object in a signal. */
export const boundTo = <Name extends string>(signal: Signal<Partial<Record<Name, string>>>, name: Name) => ({
  name,
  value: signal.value[name] ?? '',
  set: (value: string): void => {
    signal.value = { ...signal.value, [name]: value }
  },
})

/** Why the server refused what the form said. A field with a `name` shows what is wrong with the property of that name. */
export const Refused = createContext<unknown>(null)

/** The problem is no part of the field's name, but its description. */
function useProblem(name: string | undefined) {
  const id = useId()
  const error = useContext(Refused)
  const details = error instanceof Refusal && name !== undefined ? error.details : []
  const problem = details.find(({ path }) => path === `/${name}`)
  if (!problem) return { label: {}, control: {}, shown: null }
  return {
    label: { id },
    control: { 'aria-invalid': true, 'aria-labelledby': id, 'aria-describedby': `${id}-problem` },
    shown: (
      <small class="bad" id={`${id}-problem`}>
        {problem.message}
      </small>
    ),
  }
}

export function Field({
  label,
  name,
  value,
  set,
  children,
  ...more
}: {
  label: string
  name?: string
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
  const problem = useProblem(name)
  return (
    <label class="field grow">
      <span {...problem.label}>{label}</span>
      <input
        type="text"
        autocomplete="off"
        spellcheck={false}
        {...(more.required && { pattern: '.*\\S.*', title: 'not only spaces' })}
        {...(more as object)}
        {...problem.control}
        value={value}
        onInput={event => set(event.currentTarget.value)}
      />
      {problem.shown}
      {children}
    </label>
  )
}

/** Several lines. */
export function Area({
  label,
  name,
  value,
  set,
  class: more = '',
  ...others
}: {
  label: string
  name?: string
  value: string
  set(value: string): void
  class?: string
  rows: number
  placeholder?: string
  maxLength?: number
}) {
  const problem = useProblem(name)
  return (
    <label class={`field ${more}`}>
      <span {...problem.label}>{label}</span>
      <textarea
        spellcheck={false}
        {...others}
        {...problem.control}
        value={value}
        onInput={event => set(event.currentTarget.value)}
      />
      {problem.shown}
    </label>
  )
}

/** The values of a select, each with its title. */
type Choices<T extends string> = readonly (readonly [value: T, title: string])[]

export function Select<T extends string>({
  label,
  name,
  value,
  set,
  of,
}: {
  label: string
  name?: string
  value: T
  set(value: T): void
  of: Choices<NoInfer<T>>
}) {
  const problem = useProblem(name)
  return (
    <label class="field">
      <span {...problem.label}>{label}</span>
      <select {...problem.control} value={value} onChange={event => set(event.currentTarget.value as T)}>
        {of.map(([each, title]) => (
          <option key={each} value={each}>
            {title}
          </option>
        ))}
      </select>
      {problem.shown}
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
