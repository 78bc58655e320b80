// Names in expressions, as they are typed and as they stand: `phases.fetch.data`, `phases['a-b'].?text`. A text that is being
// typed is no expression yet, so it is looked at by its letters.

import type { Range } from './place.ts'

/** Names that are reached from one another, each with its place in the text. */
export type Chain = readonly (Range & { name: string })[]

const STEP = /\s*\.\??\s*([A-Za-z_]\w*)|\s*\[\??\s*(?:'([^']*)'|"([^"]*)")\s*\]/y
const FIRST = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<![\w.])([A-Za-z_]\w*)/g

/** The chains of an expression. */
export function* chainsIn(text: string): Generator<Chain> {
  for (const found of text.matchAll(FIRST)) {
    const [, root] = found
    if (root === undefined) continue
    const chain = [{ name: root, from: found.index, to: found.index + root.length }]
    for (let at = chain[0]!.to; ; at = STEP.lastIndex) {
      STEP.lastIndex = at
      const step = STEP.exec(text)
      if (!step) break
      const name = step[1] ?? step[2] ?? step[3]!
      const from = step.index + step[0].lastIndexOf(name)
      chain.push({ name, from, to: from + name.length })
    }
    yield chain
  }
}

/** The chain up to the name at an offset; null where no name stands. */
export function chainAt(text: string, offset: number): Chain | null {
  for (const chain of chainsIn(text)) {
    const at = chain.findIndex(({ from, to }) => from <= offset && offset <= to)
    if (at !== -1) return chain.slice(0, at + 1)
  }
  return null
}

/** What stands before the cursor: the names before the last dot or bracket, and what is typed of the next one. */
export interface Typed {
  above: readonly string[]
  /** `.`, `.?`, `['`, or nothing for a name at the beginning. */
  by: string
  typed: string
}

const LAST = /(?<![\w.])((?:[A-Za-z_]\w*)(?:\.\??[A-Za-z_]\w*|\[\??(?:'[^']*'|"[^"]*")\])*)(\.\??|\[\??['"])([\w-]*)$/

/** Null inside of a text. */
export function typedIn(before: string): Typed | null {
  const last = LAST.exec(before)
  if (last) {
    const [, names, by, typed] = last
    const [chain] = chainsIn(names!)
    return isText(before.slice(0, last.index))
      ? null
      : { above: chain!.map(({ name }) => name), by: by!, typed: typed! }
  }
  if (isText(before) || /[\w.\])]\s*[.[][\w]*$/.test(before)) return null
  return { above: [], by: '', typed: /[A-Za-z_]?\w*$/.exec(before)![0] }
}

/** Whether a text of CEL is open at the end. */
function isText(before: string): boolean {
  return /['"]/.test(before.replaceAll(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/g, ''))
}
