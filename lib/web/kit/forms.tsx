// A form made of the fields that a team or a gate asks for.

import type { Signal } from '@preact/signals'
import type { Json, JsonObject } from '../../json.ts'
import type { Field } from '../../wire/records/forms.ts'

/** The texts that the user typed, by the name of the field. A field that nobody has touched is missing. */
export type Typed = Readonly<Record<string, string>>

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** The texts with which a form begins: the given values, without those of secrets. */
export function typedOf(fields: readonly Field[], values: JsonObject): Typed {
  const known = fields.filter(({ name, secret }) => !secret && values[name] !== undefined && values[name] !== null)
  return Object.fromEntries(known.map(({ name }) => [name, textOf(values[name])]))
}

/** The values of a form. Throws an error that names the field whose text does not fit. */
export function valuesOf(fields: readonly Field[], typed: Typed): JsonObject {
  const given = fields.filter(
    ({ name, type }) => typed[name] !== undefined && (typed[name] !== '' || type === 'string'),
  )
  return Object.fromEntries(given.map(field => [field.name, jsonOf(field, typed[field.name]!)]))
}

function jsonOf({ name, type, choices }: Field, text: string): Json {
  if (choices) return choices.find(choice => textOf(choice) === text) ?? text
  if (type === 'string' || type === 'file') return text
  if (type === 'boolean') return text === 'true'
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`${name}: ${type === 'number' ? 'type a number' : `type the ${type} as JSON`}`)
  }
}

/**
 * The inputs that somebody typed, as options of the command line. A secret is read from stdin there. A text that begins with
 * `@` would be the name of a file, and may come from an earlier run of somebody else.
 */
export const inputOptions = (fields: readonly Field[], typed: Typed): string[] =>
  fields.flatMap(({ name, secret }) => {
    const text = typed[name]
    if (text === undefined || text === '') return []
    return ['-i', `${name}=${secret ? '@-' : text.replace(/^@/, '@@')}`]
  })

/** What was chosen, as an option of the command line. */
export const optionOf = (name: string, text: string): string[] => (text.trim() === '' ? [] : [`--${name}`, text.trim()])

export function Fields({ of, typed, prefix }: { of: readonly Field[]; typed: Signal<Typed>; prefix: string }) {
  return (
    <>
      {of.map(field => {
        const id = `${prefix}-${field.name}`
        const set = (text: string) => {
          typed.value = { ...typed.value, [field.name]: text }
        }
        const text = typed.value[field.name] ?? (field.default === undefined ? '' : textOf(field.default))
        return (
          <div class="field" key={field.name}>
            <label for={id}>
              {field.name} {field.required && <span class="quiet">(required)</span>}
            </label>
            <Control id={id} field={field} text={text} set={set} />
            {field.description && (
              <small class="quiet" id={`${id}-about`}>
                {field.description}
              </small>
            )}
          </div>
        )
      })}
    </>
  )
}

interface ControlProps {
  id: string
  field: Field
  text: string
  set(text: string): void
}

function Control({ id, field: { type, choices, required, secret, description }, text, set }: ControlProps) {
  const about = description ? { 'aria-describedby': `${id}-about` } : {}
  const input = (event: { currentTarget: { value: string } }) => set(event.currentTarget.value)
  if (choices || type === 'boolean') {
    const options = choices?.map(textOf) ?? ['true', 'false']
    return (
      <select id={id} {...about} required={required} value={text} onChange={input}>
        {!options.includes(text) && <option value={text}>{text || 'choose'}</option>}
        {options.map(option => (
          <option key={option} value={option}>
            {type === 'boolean' ? { true: 'yes', false: 'no' }[option] : option}
          </option>
        ))}
      </select>
    )
  }
  if (type === 'list' || type === 'object') {
    const example = type === 'list' ? '["one", "two"]' : '{"name": "value"}'
    return (
      <textarea id={id} {...about} required={required} rows={3} value={text} placeholder={example} onInput={input} />
    )
  }
  const common = { id, ...about, autocomplete: 'off', value: text, onInput: input } as const
  if (secret) return <input {...common} type="password" required={required} />
  return (
    <input
      {...common}
      type="text"
      required={required}
      inputMode={type === 'number' ? 'decimal' : 'text'}
      placeholder={type === 'file' ? 'path of a file on the machine of the daemon' : ''}
    />
  )
}
