// The tokens of a YAML file, as its parser gives them: every character of the file is in one of them, in order.

import type { CST } from 'yaml'

export type Token = CST.Token
export type Item = CST.CollectionItem
type Collection = CST.BlockMap | CST.BlockSequence | CST.FlowCollection

export const isBlock = (token: Token | null | undefined): token is CST.BlockMap | CST.BlockSequence =>
  token?.type === 'block-map' || token?.type === 'block-seq'

/** The smallest tokens of a token, in order. */
export function* leavesOf(token: Token): Generator<Token> {
  if (isBlock(token)) yield* leavesIn(token)
  else if (token.type === 'flow-collection') {
    yield token.start
    yield* leavesIn(token)
    yield* token.end
  } else if (token.type === 'document') {
    yield* token.start
    if (token.value) yield* leavesOf(token.value)
    yield* token.end ?? []
  } else {
    if (token.type === 'block-scalar') yield* token.props
    yield token
    if ('end' in token) yield* token.end ?? []
  }
}

function* leavesIn({ items }: Collection): Generator<Token> {
  for (const item of items) yield* leavesOfItem(item)
}

export function* leavesOfItem({ start, key, sep, value }: Item): Generator<Token> {
  yield* start
  if (key) yield* leavesOf(key)
  yield* sep ?? []
  if (value) yield* leavesOf(value)
}

/** White space and comments, which stand between values. */
export const isBetween = ({ type }: Token): boolean => type === 'space' || type === 'newline' || type === 'comment'

/** Whether an item is a value or a pair, and not what stands before the end of a list in brackets. */
export const isFull = ({ start, key, sep, value }: Item): boolean =>
  Boolean(key || value || sep?.length) || start.some(each => !isBetween(each) && each.type !== 'comma')
