// `{{ }}` in strings: compiled once and evaluated for each run. A template alone keeps the type of its value; inside a
// text the value is rendered. `{{{{` is a literal `{{`.

import { CadreError } from '../../error.ts'
import type { Json, JsonObject } from '../../json.ts'
import type { Expression, Template } from '../model/model.ts'
import type { Source } from '../yaml/yaml.ts'
import { field, type Node, type Place, type Scalar, toJson } from '../yaml/yaml.ts'
import { Evaluation } from './evaluation.ts'
import { EvaluationMistake, type Parsed, parseExpression } from './expression.ts'
import { insteadOf } from './instead.ts'
import type { Kind } from './known.ts'
import type { Names, Use } from './survey.ts'

/** What a template alone gives if it gives anything, as far as that is known before a run. */
export interface Given {
  kind: Kind
  /** Of the expression, and its text. */
  place: Place
  text: string
}

/** The place of an expression, and the functions that are called with the names that it uses. */
export interface Site {
  source: Source
  names: Names
  /** Declared inputs of type file. */
  files: ReadonlySet<string>
  used(use: Use, place: Place): void
  /** Gets what templates give that are the whole of a value. */
  given?: Map<Node, Given>
}

/**
 * Paths of command texts. A shell executes them, so no value is inserted into them, and `{{ }}` belongs to the command
 * itself.
 */
export const COMMAND_TEXT = /\/commands\/\d+\/run$/

/** Paths of the environment of commands, where files have absolute paths. */
const ENVIRONMENT = /^(?:\/phases\/\d+)+\/(?:commands\/\d+\/)?env\//

/** Maximum number of literals and expressions in one text. */
const MAX_PIECES = 400

/** `{{` before one of our names, which marks one of our templates and not one of another program. */
const OURS = /\{\{\s*(?:(?:inputs|phases|secrets|run|item|index)\b|[^{}]{0,200}(?<![.\w])(?:inputs|phases|item)[.[])/

const COMMAND_HINT = 'templates are not read in `run`: put the value in `env` and use "$NAME" here'
const GITHUB_HINT = "`${{ }}` is not read: write `{{ }}` (a dollar sign before a value is written `{{ '$' }}`)"

export function hasTemplate(text: string): boolean {
  return text.replaceAll('{{{{', '').includes('{{')
}

/** The first text, at any depth of a value that is never evaluated, that was meant as one of our templates. */
export function templateIn(node: Node): Scalar | null {
  if (node.kind === 'scalar') return typeof node.value === 'string' && OURS.test(node.value) ? node : null
  const below = node.kind === 'list' ? node.items : [...node.entries.values()].map(entry => entry.node)
  for (const each of below) {
    const found = templateIn(each)
    if (found) return found
  }
  return null
}

/** A template that always gives `value`. */
export function constant(value: Json, place = ''): Template {
  return { place, phases: new Set(), given: new Set(), constant: value, source: value, evaluate: () => value }
}

/** Compiles a value with templates at any depth. Mistakes are reported to the site's source. */
export function compileTemplate(node: Node, site: Site): Template {
  const named: Named = { phases: new Set(), given: new Set() }
  const place = site.source.place(node.offset)
  const source = toJson(node)
  const compiled = compile(node, site, named)
  if (isConstant(compiled)) return { ...constant(compiled.constant, place), source }
  return { place, ...named, source, evaluate: scope => compiled.evaluate(new Evaluation(scope)) }
}

/** Compiles an entry of an agent. A `ref` that is a number becomes the text as it was written. */
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

/** What a template names. */
type Named = { phases: Set<string>; given: Set<string> }
type Evaluate = (evaluation: Evaluation) => Json
type Compiled = { constant: Json; evaluate?: undefined } | { evaluate: Evaluate }

function compile(node: Node, site: Site, named: Named): Compiled {
  if (node.kind === 'scalar') return compileScalar(node, site, named)
  if (node.kind === 'list') {
    const items = node.items.map(item => compile(item, site, named))
    if (items.every(isConstant)) return { constant: items.map(item => item.constant) }
    return { evaluate: evaluation => items.map(item => resultOf(item, evaluation)) }
  }
  const fields = [...node.entries].map(([key, { node: value }]) => [key, compile(value, site, named)] as const)
  const evaluate = (evaluation: Evaluation | null): JsonObject => {
    const object: JsonObject = {}
    for (const [key, compiled] of fields) object[key] = resultOf(compiled, evaluation)
    return object
  }
  return fields.every(([, compiled]) => isConstant(compiled)) ? { constant: evaluate(null) } : { evaluate }
}

function isConstant(compiled: Compiled): compiled is { constant: Json } {
  return compiled.evaluate === undefined
}

/** The value of a part. Constants need no evaluation. */
function resultOf(compiled: Compiled, evaluation: Evaluation | null): Json {
  return isConstant(compiled) ? compiled.constant : compiled.evaluate(evaluation!)
}

function compileScalar(scalar: Scalar, site: Site, named: Named): Compiled {
  const { value } = scalar
  if (typeof value !== 'string' || !value.includes('{{')) return { constant: value }
  if (COMMAND_TEXT.test(scalar.path)) {
    const at = value.search(OURS)
    if (at !== -1) report(scalar, site, at, COMMAND_HINT)
    return { constant: value }
  }
  const pieces = split(value)
  if ('unclosed' in pieces) {
    report(scalar, site, pieces.unclosed, '`{{` is not closed by `}}` (a literal `{{` is written `{{{{`)')
    return { constant: value }
  }
  if (pieces.parts.length > MAX_PIECES) {
    site.source.report(scalar, `a text may contain at most ${MAX_PIECES / 2} templates`)
    return { constant: value }
  }
  const isAlone = pieces.parts.length === 1
  const parts: (string | Evaluate)[] = []
  for (const piece of pieces.parts) {
    if (typeof piece === 'string') parts.push(piece)
    else {
      if (value[piece.offset - 3] === '$') report(scalar, site, piece.offset - 3, GITHUB_HINT)
      parts.push(compilePiece(scalar, piece, site, named, isAlone))
    }
  }
  const [only] = parts
  if (parts.length === 1 && typeof only === 'function') return { evaluate: only }
  if (parts.every(part => typeof part === 'string')) return { constant: parts.join('') }
  return {
    evaluate: evaluation => parts.map(part => (typeof part === 'string' ? part : render(part(evaluation)))).join(''),
  }
}

/** A value inside a text: strings unchanged, numbers and bools plain, null empty, lists and objects as compact JSON. */
function render(value: Json): string {
  if (value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function compilePiece(scalar: Scalar, { text, offset }: Piece, site: Site, named: Named, isAlone: boolean): Evaluate {
  const parsed = parseAt(scalar, text, offset, site)
  if (isAlone && parsed.gives) {
    const start = offset + (text.length - text.trimStart().length)
    const place = { offset: site.source.within(scalar, start), path: scalar.path }
    site.given?.set(scalar, { kind: parsed.gives, place, text: text.trim() })
  }
  for (const { kind, name } of parsed.uses) {
    if (kind === 'phase') named.phases.add(name)
    else if (kind !== 'item') named.given.add(`${kind}s.${name}`)
  }
  const { source } = site
  return evaluation => evaluateAt(parsed, evaluation, text, at => source.place(source.within(scalar, offset + at)))
}

function parseAt(scalar: Scalar, text: string, offset: number, site: Site): Parsed {
  const names = ENVIRONMENT.test(scalar.path) ? { ...site.names, files: site.files } : site.names
  const parsed = parseExpression(text, names)
  for (const mistake of parsed.mistakes) report(scalar, site, offset + mistake.offset, mistake.message)
  for (const use of parsed.uses) {
    site.used(use, { offset: site.source.within(scalar, offset + use.offset), path: scalar.path })
  }
  return parsed
}

function evaluateAt(parsed: Parsed, evaluation: Evaluation, text: string, placeOf: (at: number) => string): Json {
  try {
    return parsed.evaluate(evaluation)
  } catch (error) {
    if (!(error instanceof EvaluationMistake)) throw error
    throw new CadreError('invalid_request', `${placeOf(error.offset)}: ${error.message} in \`${short(text.trim())}\``)
  }
}

function short(text: string): string {
  return text.length > 200 ? `${text.slice(0, 199)}…` : text
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
    report(scalar, site, start, `${expected}, but this gives ${parsed.type}`)
  }
  const { source } = site
  const placeOf = (at: number) => source.place(source.within(scalar, piece.offset + at))
  const phases = new Set(parsed.uses.flatMap(use => (use.kind === 'phase' ? [use.name] : [])))
  return {
    source: piece.text.trim(),
    place: placeOf(0),
    phases,
    evaluate(scope) {
      const value = evaluateAt(parsed, new Evaluation(scope), piece.text, placeOf)
      if (types.some(each => isOfCelType(value, each))) return value
      const none = types[0] === 'bool' ? 'false' : '[]'
      const instead = value === null ? `: ${insteadOf(short(piece.text.trim()), none)}` : ''
      throw new CadreError(
        'invalid_request',
        `${placeOf(0)}: ${expected}, but this gave ${short(JSON.stringify(value))}${instead}`,
      )
    },
  }
}

function isOfCelType(value: Json, type: string): boolean {
  return type === 'list' ? Array.isArray(value) : type === 'bool' ? typeof value === 'boolean' : true
}

interface Piece {
  text: string
  /** Where the expression begins, after `{{`. */
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

/** The offset of the `}}` that ends an expression, outside its strings and its own braces; -1 when there is none. */
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

/** The offset of the last quote of a CEL string that begins at `start`; -1 when it does not end. */
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
