// The type of what a redactor has masked. Whatever records, shows or sends a value takes this type, so a value that
// nobody has masked does not compile there. Only `createRedactor` and the two functions below make such texts, and the
// type costs nothing when the program runs.

import type { Json } from '../json.ts'

declare const MASKED: unique symbol

/** The mark of a text in which every known secret was replaced. It exists for the compiler only. */
interface Mark {
  readonly [MASKED]: true
}

export type MaskedText = string & Mark

type MaskedJson = null | boolean | number | MaskedText | MaskedJson[] | { [key: string]: MaskedJson }

/** The same value with every text in it masked. */
export type Masked<T> = Json extends T ? MaskedJson : MaskedPart<T>
type MaskedPart<T> = T extends string ? T & Mark : T extends object ? { [Key in keyof T]: Masked<T[Key]> } : T

/** Puts masked values between words of ours: maskedText`item ${key} failed`. */
export function maskedText(words: TemplateStringsArray, ...values: readonly (MaskedText | number)[]): MaskedText {
  return String.raw({ raw: words }, ...values) as MaskedText
}

export function joinMasked(texts: readonly MaskedText[], between: string): MaskedText {
  return texts.join(between) as MaskedText
}

/** Masked values as JSON, such as for a column of the database. */
export function maskedJson(value: MaskedJson | readonly MaskedJson[]): MaskedText {
  return JSON.stringify(value) as MaskedText
}

/** A text that consists of what the run database holds, which was masked when it was recorded. */
export function recordedText(text: string): MaskedText {
  return text as MaskedText
}
