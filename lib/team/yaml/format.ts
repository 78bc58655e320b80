// A team's file in the one layout: indentation, blank lines, and spaces. What a person chose stays: comments, quotes, flow
// or block, and the lines of long texts. A name stands first, which changes nothing.

import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  Lexer,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
  type Tags,
  visit,
  type YAMLMap,
} from 'yaml'
import { CadreError } from '../../error.ts'
import { toJson } from './node.ts'
import { readYaml } from './read-yaml.ts'
import { Source } from './source.ts'

/** Flow collections that are longer are written over several lines. */
const WIDTH = 120

/** The fields of a team that stand first, in this order. */
const HEAD = ['name', 'version', 'description']

/**
 * The text of `source` in that layout; null when it cannot be read, which is reported to `source`. Throws `internal` when the
 * result would say something else, so that nobody writes it.
 */
export function formatYaml(source: Source): string | null {
  const before = readYaml(source)
  if (!before || source.problems.length > 0) return null
  const { text } = source
  const document = parseDocument(text, {
    prettyErrors: false,
    uniqueKeys: false,
    stringKeys: true,
    customTags: tags => tags.map(tag => keepStyle(tag, text)),
  })
  const { contents } = document
  if (isMap(contents) && !hasAliases(contents)) {
    toFront(contents, HEAD)
    visit(contents, { Seq: (_, { items }) => items.forEach(each => void (isMap(each) && toFront(each, ['name']))) })
  }
  const formatted = document.toString({ lineWidth: WIDTH, indent: 2, indentSeq: true })
  const after = new Source(source.file, formatted)
  const now = readYaml(after)
  const isSame =
    now && Bun.deepEquals(toJson(now), toJson(before)) && Bun.deepEquals(comments(formatted), comments(text))
  if (!isSame) throw new CadreError('internal', `${source.file} cannot be formatted without changing it`)
  return /\r\n/.test(text) ? formatted.replaceAll('\n', '\r\n') : formatted
}

type Tag = Tags[number]

/** Keeps a text as it is broken into lines, and writes lists without spaces inside the brackets. */
function keepStyle(tag: Tag, text: string): Tag {
  if (typeof tag === 'string') return tag
  const { stringify } = tag
  if (tag.tag === 'tag:yaml.org,2002:str' && stringify) {
    const kept: typeof stringify = (item, ctx, ...rest) => {
      const written = brokenText(item as Scalar, text)
      if (written !== null) return written.map((each, at) => (at > 0 && each ? ctx.indent + each : each)).join('\n')
      return stringify(item, { ...ctx, options: { ...ctx.options, lineWidth: 0 } }, ...rest)
    }
    return { ...tag, stringify: kept } as Tag
  }
  if (!tag.tag?.endsWith(':seq') && !tag.tag?.endsWith(':map')) return tag
  const flowCollectionPadding = tag.tag.endsWith(':map') ? ' ' : ''
  return {
    ...tag,
    stringify: (item: Node, ctx: object, ...rest: unknown[]) =>
      (item.toString as (...given: unknown[]) => string)({ ...ctx, flowCollectionPadding }, ...rest),
  } as Tag
}

/** The lines of a text that is broken where YAML does not ask for it, without their indentation; null for another text. */
function brokenText({ range, type, comment }: Scalar, text: string): string[] | null {
  const lines = text
    .slice(...(range ?? [0, 0]))
    .trimEnd()
    .split(/\r?\n/)
  if (lines.length < 2 || comment || type === 'BLOCK_LITERAL') return null
  if (type !== 'BLOCK_FOLDED') return lines.map(line => line.trim())
  const first = lines.find((line, at) => at > 0 && line.trim() !== '') ?? ''
  const indent = first.length - first.trimStart().length
  return /^>-?$/.test(lines[0]!) ? lines.map((line, at) => (at === 0 ? line : line.slice(indent).trimEnd())) : null
}

function hasAliases(node: Node): boolean {
  let found = false
  visit(node, {
    Node: (_, each) => {
      if (!isAlias(each) && !('anchor' in each && each.anchor)) return undefined
      found = true
      return visit.BREAK
    },
  })
  return found
}

/** Moves fields to the front, unless a comment or a blank line could then seem to be about another field. */
function toFront(map: YAMLMap, names: readonly string[]): void {
  const rank = ({ key }: Pair) => {
    const at = names.indexOf(isScalar(key) ? String(key.value) : '')
    return at === -1 ? names.length : at
  }
  const sorted = map.items.toSorted((a, b) => rank(a) - rank(b))
  const moved = map.items.filter((each, at) => each !== sorted[at])
  if (moved.length > 0 && !map.commentBefore && !moved.some(isSetApart)) map.items = sorted
}

const isSetApart = ({ key, value }: Pair): boolean =>
  [key, value].some(each => isNode(each) && Boolean(each.commentBefore || each.comment || each.spaceBefore))

/** The comments in order, without the spaces around them. */
function comments(text: string): string[] {
  return [...new Lexer().lex(text)].filter(token => token.startsWith('#')).map(token => token.trim())
}
