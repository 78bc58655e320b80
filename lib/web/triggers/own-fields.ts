// What only watches, chains and hooks say of their occasions, as the texts of a form. What is left empty is as usual.

import type { Signal } from '@preact/signals'
import { WATCH_DEFAULTS } from '../../triggers/watch/words.ts'
import type { TriggerKind } from '../../wire/records/trigger-words.ts'

/** The texts of a form, by the names of fields. */
export type SpecTexts = Readonly<Partial<Record<string, string>>>
export type Texts = Signal<SpecTexts>

/** `lines`: a list with a text on each line. `words`: a list of chosen words. */
type Form = 'text' | 'number' | 'lines' | 'words' | 'flag'

const FORMS: Readonly<Partial<Record<TriggerKind, Readonly<Record<string, Form>>>>> = {
  watch: {
    ...({ folder: 'text', match: 'lines', ignore: 'lines', depth: 'number', on: 'words', settle: 'text' } as const),
    ...({ batch: 'text', poll: 'text', initial: 'flag', identity: 'text', claim: 'flag' } as const),
  },
  chain: { after: 'text', on: 'words', again: 'flag' },
  hook: { scheme: 'text', header: 'text', prefix: 'text', encoding: 'text', id_header: 'text', dedup: 'text' },
}
const USUAL: Readonly<Partial<Record<TriggerKind, Readonly<Record<string, unknown>>>>> = {
  watch: WATCH_DEFAULTS,
  chain: { on: ['completed'], again: false },
  hook: { scheme: 'github' },
}

export const formsOf = (kind: string | undefined) => Object.entries(FORMS[kind as TriggerKind] ?? {})

/** The texts of what a trigger says, or of what is usual. */
export function ownTexts(kind: TriggerKind, fields: object = USUAL[kind] ?? {}): SpecTexts {
  return Object.fromEntries(
    formsOf(kind).flatMap(([name, form]) => {
      const value = (fields as Record<string, unknown>)[name]
      return value === undefined || value === null ? [] : [[name, textOf(value, form)] as const]
    }),
  )
}

function textOf(value: unknown, form: Form): string {
  if (form === 'lines') return (value as string[]).join('\n')
  if (form === 'flag') return value === true ? 'yes' : ''
  return String(value)
}

/** The same as the properties of a body. */
export function ownPart(texts: SpecTexts): Record<string, unknown> {
  const usual = USUAL[texts.kind as TriggerKind] ?? {}
  const part = formsOf(texts.kind).map(([name, form]) => [name, valueIn(name, form, texts[name]?.trim() ?? '', usual)])
  return Object.fromEntries(part.filter(([, value]) => value !== undefined))
}

function valueIn(name: string, form: Form, text: string, usual: Readonly<Record<string, unknown>>): unknown {
  if (form === 'flag') return text === 'yes'
  if (text === '') return usual[name]
  if (form === 'number') return numberOf(name, text)
  if (form === 'words') return text.split(',')
  if (form === 'text') return text
  return text
    .split('\n')
    .map(each => each.trim())
    .filter(Boolean)
}

export function numberOf(name: string, text: string): number {
  if (/^-?\d+$/.test(text)) return Number(text)
  throw new Error(`${name.replace('_', ' ')}: type a whole number`)
}
