// A team's file in the one layout: indentation, blank lines, and spaces. What a person chose stays: comments, quotes, flow
// or block, and the lines of long texts. A name stands first, which changes nothing.

import { Lexer } from 'yaml'
import { CadreError } from '../../error.ts'
import type { Json } from '../../json.ts'
import { layOut } from './layout.ts'
import type { Node } from './node.ts'
import { readYaml } from './read-yaml.ts'
import { Source } from './source.ts'

/**
 * The text of `source` in that layout; null when it cannot be read, which is reported to `source`. Throws `internal` when the
 * result would say something else, so that nobody writes it.
 */
export function formatYaml(source: Source): string | null {
  const before = readYaml(source)
  if (!before || source.problems.length > 0) return null
  const text = source.text.replaceAll('\r\n', '\n')
  const formatted = layOut(text)
  const now = readYaml(new Source(source.file, formatted))
  const isSame =
    now && Bun.deepEquals(written(now), written(before)) && Bun.deepEquals(comments(formatted), comments(text))
  if (!isSame) throw new CadreError('internal', `${source.file} cannot be formatted without changing it`)
  return source.text.includes('\r\n') ? formatted.replaceAll('\n', '\r\n') : formatted
}

/** The values with how each was written, because a `ref` is taken as it stands. */
function written(node: Node): Json {
  if (node.kind === 'scalar') return [node.value, node.written]
  if (node.kind === 'list') return node.items.map(written)
  return Object.fromEntries([...node.entries].map(([name, { node: value }]) => [name, written(value)]))
}

/** The comments in order, without the spaces around them. */
function comments(text: string): string[] {
  return [...new Lexer().lex(text)].filter(token => token.startsWith('#')).map(token => token.trim())
}
