// `{{ }}` in strings: compiled once, evaluated per run. A template alone keeps the type of its value, in text it is
// rendered; `{{{{` is a literal `{{`.

import { CadreError } from '../../error.ts'
import type { Json, JsonObject } from '../../json.ts'
import type { Expression, Scope, Template } from '../model.ts'
import type { Source } from '../yaml/yaml.ts'
import { field, type Node, type Place, type Scalar, toJson } from '../yaml/yaml.ts'
import { EvaluationMistake, type Names, type Parsed, parseExpression, type Use } from './expression.ts'

/** Where an expression stands, and what is told of the names it uses. */
export interface Site {
  source: Source
  names: Names
  used(use: Use, place: Place): void
}

/** A command's text goes to a shell: nothing is ever pasted into it. */
export const COMMAND_TEXT = /\/commands\/\d+\/run$/

/** Of one text: literals and expressions. */
const MAX_PIECES = 400

const COMMAND_HINT = 'templates are not read in `run`: put the value in `env` and use "$NAME" here'

export function hasTemplate(text: string): boolean {
  return text.replaceAll('{{{{', '').includes('{{')
}

/** A template that always gives `value`. */
export function constant(value: Json, place = ''): Template {
  return { place, phases: new Set(), constant: value, source: value, evaluate: () => value }
}

/** Compiles a value with templates at any depth. Mistakes are reported to the site's source. */
export function compileTemplate(node: Node, site: Site): Template {
  const phases = new Set<string>()
  const place = site.source.place(node.offset)
  const source = toJson(node)
  const compiled = compile(node, site, phases)
  if (isConstant(compiled)) return { ...constant(compiled.constant, place), source }
  return { place, phases, source, evaluate: compiled.evaluate }
}

/** Compiles what an agent gets: its `ref` is text, as it was written when it is a number. */
export function compileEntry(node: Node, site: Site): Template {
  const ref = field(node, 'ref')
  if (node.kind !== 'map' || ref?.kind !== 'scalar') return compileTemplate(node, site)
  if (typeof ref.value === 'number') {
    const text: Scalar = { ...ref, value: ref.written }
    return compileTemplate({ ...node, entries: new Map(node.entries).set('ref', { key: ref, node: text }) }, site)
  }
  const template = compileTemplate(node, site)
  if (template.constant !== undefined) return template
  return {
    ...template,
    evaluate(scope) {
      const entry = template.evaluate(scope) as JsonObject
      return typeof entry.ref === 'number' ? { ...entry, ref: String(entry.ref) } : entry
    },
  }
}

type Compiled = { constant: Json; evaluate?: undefined } | { evaluate(scope: Scope): Json }

function compile(node: Node, site: Site, phases: Set<string>): Compiled {
  if (node.kind === 'scalar') return compileScalar(node, site, phases)
  if (node.kind === 'list') {
    const items = node.items.map(item => compile(item, site, phases))
    if (items.every(isConstant)) return { constant: items.map(item => item.constant) }
    return { evaluate: scope => items.map(item => resultOf(item, scope)) }
  }
  const fields = [...node.entries].map(([key, { node: value }]) => [key, compile(value, site, phases)] as const)
  const build = (value: (compiled: Compiled) => Json): JsonObject => {
    const object: JsonObject = {}
    for (const [key, compiled] of fields) object[key] = value(compiled)
    return object
  }
  if (fields.every(([, compiled]) => isConstant(compiled))) return { constant: build(each => resultOf(each, NO_SCOPE)) }
  return { evaluate: scope => build(each => resultOf(each, scope)) }
}

/** Constants do not look at it. */
const NO_SCOPE = {} as Scope

function isConstant(compiled: Compiled): compiled is { constant: Json } {
  return compiled.evaluate === undefined
}

function resultOf(compiled: Compiled, scope: Scope): Json {
  return isConstant(compiled) ? compiled.constant : compiled.evaluate(scope)
}

function compileScalar(scalar: Scalar, site: Site, phases: Set<string>): Compiled {
  const { value } = scalar
  if (typeof value !== 'string' || !value.includes('{{')) return { constant: value }
  const pieces = split(value)
  if ('unclosed' in pieces) {
    report(scalar, site, pieces.unclosed, '`{{` is not closed by `}}` (a literal `{{` is written `{{{{`)')
    return { constant: value }
  }
  if (pieces.parts.length > MAX_PIECES) {
    site.source.report(scalar, `a text holds at most ${MAX_PIECES / 2} templates`)
    return { constant: value }
  }
  const parts: (string | ((scope: Scope) => Json))[] = []
  for (const piece of pieces.parts) {
    if (typeof piece === 'string') parts.push(piece)
    else if (COMMAND_TEXT.test(scalar.path)) report(scalar, site, piece.offset - 2, COMMAND_HINT)
    else parts.push(compilePiece(scalar, piece, site, phases))
  }
  const [only] = parts
  if (parts.length === 1 && typeof only === 'function') return { evaluate: only }
  if (parts.every(part => typeof part === 'string')) return { constant: parts.join('') }
  return { evaluate: scope => parts.map(part => (typeof part === 'string' ? part : render(part(scope)))).join('') }
}

/** Strings as they are, numbers and bools plain, null empty, lists and objects as compact JSON. */
function render(value: Json): string {
  if (value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function compilePiece(
  scalar: Scalar,
  { text, offset }: Piece,
  site: Site,
  phases: Set<string>,
): (scope: Scope) => Json {
  const parsed = parseAt(scalar, text, offset, site)
  for (const use of parsed.uses) if (use.kind === 'phase') phases.add(use.name)
  const { source } = site
  return scope => evaluateAt(parsed, scope, text, at => source.place(source.within(scalar, offset + at)))
}

function parseAt(scalar: Scalar, text: string, offset: number, site: Site): Parsed {
  const parsed = parseExpression(text, site.names)
  for (const mistake of parsed.mistakes) report(scalar, site, offset + mistake.offset, mistake.message)
  for (const use of parsed.uses) {
    site.used(use, { offset: site.source.within(scalar, offset + use.offset), path: scalar.path })
  }
  return parsed
}

function evaluateAt(parsed: Parsed, scope: Scope, text: string, placeOf: (at: number) => string): Json {
  try {
    return parsed.evaluate(scope)
  } catch (error) {
    if (!(error instanceof EvaluationMistake)) throw error
    throw new CadreError('invalid_request', `${placeOf(error.offset)}: ${error.message} in \`${text.trim()}\``)
  }
}

function report(scalar: Scalar, site: Site, index: number, message: string): void {
  site.source.report({ offset: site.source.within(scalar, index), path: scalar.path }, message)
}

/** Compiles a bare expression; one surrounding `{{ }}` is accepted. `types` are the CEL types that it may have. */
export function compileExpression(scalar: Scalar, site: Site, types: readonly string[], expected: string): Expression {
  const value = String(scalar.value)
  const pieces = value.trimStart().startsWith('{{') ? split(value.trimEnd()) : { parts: [] }
  const inner = 'parts' in pieces ? pieces.parts.filter(part => typeof part !== 'string' || part.trim() !== '') : []
  const piece = inner.length === 1 && typeof inner[0] === 'object' ? inner[0] : { text: value, offset: 0 }
  const parsed = parseAt(scalar, piece.text, piece.offset, site)
  // `list<string>` is a list.
  const type = parsed.type.replace(/<.*$/, '')
  if (parsed.mistakes.length === 0 && type !== 'dyn' && !types.includes(type)) {
    const start = piece.offset + (piece.text.length - piece.text.trimStart().length)
    report(scalar, site, start, `${expected}, and this gives ${parsed.type}`)
  }
  const { source } = site
  const placeOf = (at: number) => source.place(source.within(scalar, piece.offset + at))
  const phases = new Set(parsed.uses.filter(use => use.kind === 'phase').map(use => use.name))
  return {
    source: piece.text.trim(),
    place: placeOf(0),
    phases,
    evaluate: scope => evaluateAt(parsed, scope, piece.text, placeOf),
  }
}

interface Piece {
  text: string
  /** Of the expression's text, after `{{`. */
  offset: number
}

/** Splits text into literals and expressions; `unclosed` is the offset of a `{{` without its `}}`. */
function split(text: string): { parts: (string | Piece)[] } | { unclosed: number } {
  const parts: (string | Piece)[] = []
  let literal = ''
  let at = 0
  while (at < text.length) {
    const open = text.indexOf('{{', at)
    if (open === -1) break
    literal += text.slice(at, open)
    if (text.startsWith('{{{{', open)) {
      literal += '{{'
      at = open + 4
      continue
    }
    const close = closing(text, open + 2)
    if (close === -1) return { unclosed: open }
    if (literal) parts.push(literal)
    literal = ''
    parts.push({ text: text.slice(open + 2, close), offset: open + 2 })
    at = close + 2
  }
  literal += text.slice(at)
  if (literal || parts.length === 0) parts.push(literal)
  return { parts }
}

/** Where the `}}` stands that ends an expression: outside its strings and its own braces. */
function closing(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    const character = text[at]!
    if (character === '"' || character === "'") {
      const end = stringEnd(text, at)
      if (end === -1) return -1
      at = end
    } else if (character === '{') depth++
    else if (character === '}') {
      if (depth === 0) return text[at + 1] === '}' ? at : -1
      depth--
    }
  }
  return -1
}

/** Where a CEL string ends that begins at `start`: its last quote. */
function stringEnd(text: string, start: number): number {
  const quote = text[start]!
  const triple = quote.repeat(3)
  const mark = text.startsWith(triple, start) ? triple : quote
  for (let at = start + mark.length; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text.startsWith(mark, at)) return at + mark.length - 1
  }
  return -1
}
