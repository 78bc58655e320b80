// Reads YAML as data only: one document, without tags, merge keys, or numbers that JSON does not have. Size, tokens,
// depth and the expansion of aliases are bounded, so that no file takes long. No content of a file makes this throw.

import {
  Composer,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  type ParsedNode,
  Parser,
  type YAMLParseError,
  type Scalar as YamlScalar,
} from 'yaml'
import { messageOf } from '../../error.ts'
import type { Node, Place, Scalar } from './node.ts'
import { Source } from './source.ts'

/** Maximum size of a file. */
export const MAX_BYTES = 1_048_576
const MAX_LINES = 50_000
const MAX_TOKENS = 200_000
const MAX_DEPTH = 64
/** Maximum number of nodes, including those that aliases repeat. */
const MAX_NODES = 100_000
const MAX_SYNTAX_PROBLEMS = 10

/** Decodes a file's bytes; null when they are not UTF-8. */
export function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}

/** The root of `source`, or null when it cannot be read. What is wrong is reported to `source`. */
export function readYaml(source: Source): Node | null {
  const start = { offset: 0, path: '' }
  if (Buffer.byteLength(source.text) > MAX_BYTES) {
    source.report(start, 'the file is larger than 1 MiB: move parts of it into sub-teams')
    return null
  }
  if (source.position(source.text.length).line > MAX_LINES) {
    source.report(start, `the file has more than ${MAX_LINES} lines: move parts of it into sub-teams`)
    return null
  }
  const odd = source.text.search(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]|\r(?!\n)/)
  if (odd !== -1) {
    const message =
      source.text[odd] === '\r'
        ? 'this line ends in a carriage return without a line feed: save the file with line feeds'
        : 'YAML does not allow this control character: remove it'
    source.report({ offset: odd, path: '' }, message)
    return null
  }
  try {
    return compose(source)
  } catch (error) {
    // The parser is a library: whatever it throws is reported as a problem of the file.
    source.report(start, `this YAML cannot be read: ${messageOf(error)}`)
    return null
  }
}

/**
 * The root of a text that somebody is still typing, as far as it can be read; null when nothing can. What is wrong with it is
 * reported nowhere.
 */
export function readBroken(text: string): Node | null {
  const source = new Source('', text)
  if (Buffer.byteLength(text) > MAX_BYTES) return null
  try {
    const contents = documentsIn(source)?.[0]?.contents
    return contents ? new Reader(source).read(contents, '', 0) : null
  } catch {
    // The parser is a library, and it was made for texts that are whole.
    return null
  }
}

/** The documents of a text with their mistakes; null for one that is too long. */
function documentsIn(source: Source) {
  const parser = new Parser()
  const tokens = []
  let count = 0
  let offset = 0
  for (const lexeme of new Lexer().lex(source.text)) {
    if (++count > MAX_TOKENS) {
      source.report({ offset, path: '' }, 'the file is too long from here on: move parts of it into sub-teams')
      return null
    }
    for (const token of parser.next(lexeme)) tokens.push(token)
    offset = parser.offset
    if (parser.stack.length > MAX_DEPTH * 2) {
      source.report({ offset, path: '' }, `the file must not be nested deeper than ${MAX_DEPTH} levels`)
      return null
    }
  }
  for (const token of parser.end()) tokens.push(token)
  const composer = new Composer({ prettyErrors: false, uniqueKeys: false, stringKeys: true, resolveKnownTags: false })
  return [...composer.compose(tokens, true, source.text.length)]
}

function compose(source: Source): Node | null {
  const [document, another] = documentsIn(source) ?? []
  if (!document) return null
  for (const error of document.errors.slice(0, MAX_SYNTAX_PROBLEMS)) reportSyntax(source, error)
  if (another) {
    source.report(
      { offset: another.range[0], path: '' },
      'a second document begins here: a team.yml must be one document',
    )
  }
  if (document.directives.yaml.explicit && document.directives.yaml.version !== '1.2') {
    source.report({ offset: 0, path: '' }, `%YAML ${document.directives.yaml.version}: a team.yml must be YAML 1.2`)
  }
  if (source.problems.length > 0) return null
  if (document.contents) return new Reader(source).read(document.contents, '', 0)
  source.report({ offset: 0, path: '' }, 'the file is empty')
  return null
}

/** For common mistakes, says what to write instead. Reports only the first mistake of a line. */
function reportSyntax(source: Source, { code, message, pos }: YAMLParseError): void {
  const offset = Math.min(pos[0], source.text.length)
  const { line } = source.position(offset)
  if (source.problems.some(problem => problem.line === line)) return
  const at = (start: number, hint: string) => source.report({ offset: start, path: '' }, hint)
  const value = /^[^\s,}\]]*/.exec(source.text.slice(offset, offset + 100))![0]
  const braces = unquotedTemplate(source, offset)
  if (braces !== null) {
    const template = /^\{\{[^\n]{0,80}?\}\}/.exec(source.text.slice(braces))?.[0] ?? '{{ … }}'
    at(braces, `a value that begins with \`{{\` must be in quotes: "${template.replaceAll('"', "'")}"`)
  } else if (code === 'BAD_SCALAR_START') {
    at(offset, `a value that begins with ${source.text[offset]} must be in quotes: "${value}"`)
  } else if (code === 'BLOCK_AS_IMPLICIT_KEY') {
    at(offset, 'a value that contains a colon and a space must be in quotes')
  } else at(offset, `YAML: ${message.length > 200 ? `${message.slice(0, 199)}…` : message}`)
}

/**
 * The offset of a template without quotes that begins in the line of a mistake and before it; null when there is none.
 */
function unquotedTemplate({ text }: Source, offset: number): number | null {
  const start = text.lastIndexOf('\n', offset - 1) + 1
  const before = text.slice(start, offset + 1).replace(/"[^"]*"|'[^']*'/g, quoted => ' '.repeat(quoted.length))
  const at = before.search(/(?<=(?:^|[\s[{,]))\{\{/)
  return at === -1 ? null : start + at
}

/** Turns the library's nodes into ours. */
class Reader {
  readonly #source: Source
  readonly #anchors = new Map<string, { node: Node; size: number }>()
  #nodes = 0

  constructor(source: Source) {
    this.#source = source
  }

  read(yaml: ParsedNode, path: string, depth: number): Node {
    const place: Place = { offset: yaml.range[0], path }
    if (isAlias(yaml)) return this.#alias(yaml.source, place)
    const before = this.#nodes
    if (++this.#nodes > MAX_NODES) throw new Error(`it has more than ${MAX_NODES} values`)
    if (depth > MAX_DEPTH) throw new Error(`it is nested deeper than ${MAX_DEPTH} levels`)
    if (yaml.tag && !yaml.tag.startsWith('tag:yaml.org,2002:str'))
      this.#report(place, 'tags are not supported: a value that begins with ! must be in quotes')
    const node = this.#convert(yaml, place, depth)
    if (yaml.anchor) this.#anchors.set(yaml.anchor, { node, size: this.#nodes - before })
    return node
  }

  #report(place: Place, message: string): void {
    this.#source.report(place, message)
  }

  #alias(name: string, place: Place): Node {
    const anchor = this.#anchors.get(name)
    if (!anchor) {
      this.#report(place, `there is no anchor &${name} before this alias: a text that begins with * must be in quotes`)
      return { kind: 'scalar', ...place, value: null, written: '', style: 'plain', end: place.offset }
    }
    this.#nodes += anchor.size
    if (this.#nodes > MAX_NODES) throw new Error(`its aliases expand to more than ${MAX_NODES} values`)
    return anchor.node
  }

  #convert(yaml: ParsedNode, place: Place, depth: number): Node {
    if (isScalar(yaml)) return this.#scalar(yaml as YamlScalar.Parsed, place)
    if (isSeq(yaml)) {
      const items = yaml.items.map((item, index) => this.read(item as ParsedNode, `${place.path}/${index}`, depth + 1))
      return { kind: 'list', ...place, items }
    }
    const entries = new Map<string, { key: Place; node: Node }>()
    if (!isMap(yaml)) return { kind: 'map', ...place, entries }
    for (const pair of yaml.items) {
      // Only a broken text has a value without a key.
      if (!pair.key) continue
      const name = isScalar(pair.key) ? String(pair.key.value) : ''
      const path = `${place.path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
      const key = { offset: (pair.key as ParsedNode).range[0], path }
      if (name === '<<') this.#report(key, 'merge keys are not supported: write the fields out')
      else if (name === '__proto__') this.#report(key, '`__proto__` cannot be the name of a field')
      else if (entries.has(name)) this.#report(key, `\`${name}\` is given twice: remove one`)
      else entries.set(name, { key, node: this.#value(pair.value as ParsedNode | null, key, path, depth) })
    }
    return { kind: 'map', ...place, entries }
  }

  #value(yaml: ParsedNode | null, key: Place, path: string, depth: number): Node {
    if (yaml) return this.read(yaml, path, depth + 1)
    return { kind: 'scalar', offset: key.offset, path, value: null, written: '', style: 'plain', end: key.offset }
  }

  #scalar(yaml: YamlScalar.Parsed, place: Place): Scalar {
    const value = yaml.value as Scalar['value']
    const written = typeof value === 'string' ? value : (yaml.source ?? '')
    if (typeof value === 'number') {
      if (!Number.isFinite(value)) this.#report(place, `JSON has no number ${written}: write it in quotes`)
      else if (Number.isInteger(value) && !Number.isSafeInteger(value) && !place.path.endsWith('/ref')) {
        this.#report(place, `${written} is not exact as a number: write it in quotes`)
      }
    }
    return {
      kind: 'scalar',
      ...place,
      value,
      written,
      style: STYLES[yaml.type ?? 'PLAIN'] ?? 'plain',
      end: yaml.range[1],
    }
  }
}

const STYLES: Record<string, Scalar['style']> = {
  PLAIN: 'plain',
  QUOTE_SINGLE: 'single',
  QUOTE_DOUBLE: 'double',
  BLOCK_FOLDED: 'block',
  BLOCK_LITERAL: 'block',
}
