// Puts the names of what a team declares first: `name`, `version` and `description` of the team, and the `name` of each input,
// output, phase, command and entry. Values stay in their order, which those who read them may see.

import { type Item, isBetween, leavesOf, leavesOfItem, type Token } from './tokens.ts'

const HEAD = ['name', 'version', 'description']
/** The fields whose lists declare something with a name. */
const DECLARED = ['inputs', 'outputs', 'phases', 'commands', 'sources', 'target_entries']

/** Changes the order of pairs in a document, unless an alias in it stands for what comes before. */
export function namesFirst(document: Token, text: string): void {
  if (document.type !== 'document' || !document.value) return
  for (const { type } of leavesOf(document)) if (type === 'anchor' || type === 'alias') return
  new Order(text).team(document.value, document.start)
}

class Order {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  team(mapping: Token, before: readonly Token[]): void {
    this.#toFront(mapping, HEAD, before)
    this.#declaredIn(mapping)
  }

  #declaredIn(mapping: Token): void {
    for (const { key, value } of pairsOf(mapping)) {
      const name = nameOf(key)
      if (!DECLARED.includes(name) || (value?.type !== 'block-seq' && value?.type !== 'flow-collection')) continue
      for (const { start, value: each } of value.items) {
        if (!each) continue
        this.#toFront(each, ['name'], start.slice(start.findLastIndex(({ type }) => type === 'seq-item-ind') + 1))
        if (name === 'phases') this.#declaredIn(each)
      }
    }
  }

  /** Moves pairs to the front, unless a comment or a blank line could then seem to be about another one. */
  #toFront(mapping: Token, names: readonly string[], before: readonly Token[]): void {
    const pairs = pairsOf(mapping)
    const rank = ({ key }: Item) => {
      const at = names.indexOf(nameOf(key))
      return at === -1 ? names.length : at
    }
    const sorted = pairs.toSorted((a, b) => rank(a) - rank(b))
    const moved = pairs.filter((each, at) => each !== sorted[at])
    if (moved.length === 0 || endsInComment(before)) return
    const column = this.#column(moved[0]!.start[0]?.offset ?? moved[0]!.key?.offset ?? 0)
    const isBlock = mapping.type === 'block-map'
    if (!moved.some(each => isSetApart(each, isBlock) || (isBlock && this.#isBeforeComment(each, column))))
      pairs.splice(0, Infinity, ...sorted)
  }

  /** Whether the next line is a comment that is no less indented. */
  #isBeforeComment(pair: Item, column: number): boolean {
    const last = [...leavesOfItem(pair)].findLast(each => !isBetween(each))!
    const end = last.offset + ('source' in last ? last.source.length : 0)
    const next = /\S/.exec(this.#text.slice(end))
    return next?.[0] === '#' && this.#column(end + next.index) >= column
  }

  #column = (offset: number): number => offset - (this.#text.lastIndexOf('\n', offset - 1) + 1)
}

const pairsOf = (token: Token): Item[] =>
  token.type === 'block-map' || (token.type === 'flow-collection' && token.start.type === 'flow-map-start')
    ? token.items
    : []

const nameOf = (key: Token | null | undefined): string =>
  key && 'source' in key ? key.source.replaceAll(/^["']|["']$/g, '') : ''

/** Whether a comment stands directly before what follows. */
function endsInComment(tokens: readonly Token[]): boolean {
  const last = tokens.findLastIndex(({ type }) => type === 'comment')
  const breaks = tokens.slice(last + 1).filter(({ type }) => type === 'newline').length
  return last !== -1 && breaks < 2
}

const isSetApart = (pair: Item, isBlock: boolean): boolean =>
  pair.start.some(each => (isBlock && each.type === 'newline') || !(isBetween(each) || each.type === 'comma')) ||
  leavesOfItem(pair).some(
    leaf => leaf.type === 'comment' || (leaf.type === 'block-scalar' && /(?:^|\n)\s*\n$/.test(leaf.source)),
  )
