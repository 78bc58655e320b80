// What templates give is compared with what their places take. What is reported would be wrong in every run in which the
// template gives anything, so it is found when a team is read, with a form of the template that gives what is needed.

import type { Node } from '../yaml/yaml.ts'
import type { Kind } from './known.ts'
import type { Given } from './template.ts'

/** What templates give that are the whole of a value, by their nodes. */
export type Givens = ReadonlyMap<Node, Given>

/** A longer expression is not repeated. */
const MOST = 80

/** That a template gives something of another kind than `wanted`, and how it gives that. */
export function givesAnother({ kind, text }: Given, wanted: string, form: string | null): string {
  const shown = text.length > MOST || text.includes('\n') ? 'this' : `\`${text}\``
  return `expected ${wanted}, but ${shown} gives ${kind}${form === null ? '' : `: write ${form}`}`
}

/** A template that gives `wanted` of what `given` gives; null when no function does that. */
export function formFor({ kind, text }: Given, wanted: Kind, isWhole = false): string | null {
  const value = text.length > MOST || text.includes('\n') ? '…' : text
  const operand = /^[\w.]+(\(.*\))?$/.test(value) ? value : `(${value})`
  const written = (expression: string) => `\`{{ ${expression} }}\``
  switch (wanted) {
    case 'text':
      return written(kind === 'a list' || kind === 'an object' ? `toJson(${value})` : `string(${value})`)
    case 'a number':
      if (kind === 'text') return written(`${isWhole ? 'int' : 'double'}(${value})`)
      return kind === 'true or false' ? written(`${operand} ? 1 : 0`) : written(`size(${value})`)
    case 'true or false':
      if (kind === 'text') return written(`${operand} == 'true'`)
      return written(kind === 'a number' ? `${operand} != 0` : `size(${value}) > 0`)
    case 'a list':
      return written(`[${value}]`)
    case 'an object':
      return kind === 'text' ? written(`fromJson(${value})`) : null
  }
}
