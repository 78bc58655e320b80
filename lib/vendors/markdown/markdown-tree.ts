// GitHub Flavored Markdown as mdast, the tree through which vendors' formats are converted. Content that Markdown
// cannot express becomes a link with one of our own schemes, so that it survives a round trip:
// `[@Ada](accountid:5b10a2)` is a mention, `[text](page:KEY/Title)` another page, `attachment:name` a file of the page.

import type {
  AlignType,
  BlockContent,
  DefinitionContent,
  Heading,
  ListItem,
  Paragraph,
  PhrasingContent,
  Table,
  TableCell,
} from 'mdast'

export type Block = BlockContent | DefinitionContent
export type Inline = PhrasingContent

/**
 * Maximum nesting of blocks and marks together. Deeper nodes become text. No page needs more, and deep recursion would
 * overflow the stack.
 */
export const DEEPEST = 100

export const textNode = (value: string): Inline => ({ type: 'text', value })

export const image = (url: string, alt: string): Inline => ({ type: 'image', url, alt })

export const link = (url: string, children: Inline[]): Inline => ({ type: 'link', url, children })

export const mention = (id: string, name: string): Inline =>
  link(`accountid:${id}`, [textNode(name.startsWith('@') ? name : `@${name}`)])

/** The account that a link mentions; null if it is not a mention. */
export function mentioned(url: string): string | null {
  return url.startsWith('accountid:') ? url.slice('accountid:'.length) : null
}

/** A heading. `level` is limited to the range from 1 to 6. */
export function heading(level: number, children: readonly Inline[]): Heading {
  const depth = Math.min(Math.max(Math.trunc(level) || 1, 1), 6) as Heading['depth']
  return { type: 'heading', depth, children: trimmed(children) }
}

export const quote = (children: Block[]): Block => ({ type: 'blockquote', children })

/** A paragraph without blanks and breaks at its ends, which Markdown would have to escape. */
export function paragraph(children: readonly Inline[]): Paragraph {
  return { type: 'paragraph', children: trimmed(children) }
}

export function trimmed(children: readonly Inline[]): Inline[] {
  let from = 0
  let to = children.length
  while (from < to && isBlank(children[from]!)) from++
  while (to > from && isBlank(children[to - 1]!)) to--
  const kept = children.slice(from, to)
  const first = kept[0]
  if (first?.type === 'text') kept[0] = textNode(first.value.trimStart())
  const last = kept.at(-1)
  if (last?.type === 'text') kept[kept.length - 1] = textNode(last.value.trimEnd())
  return kept
}

const isBlank = (node: Inline): boolean => node.type === 'break' || (node.type === 'text' && node.value.trim() === '')

/**
 * Converts nodes to blocks. `blockOf` returns null for inline content, and each sequence of inline nodes becomes a
 * paragraph.
 */
export function blocksWith<N>(
  nodes: readonly N[],
  blockOf: (node: N) => Block[] | null,
  inlineOf: (run: N[]) => Inline[],
): Block[] {
  const blocks: Block[] = []
  let run: N[] = []
  const flush = () => {
    const content = paragraph(inlineOf(run))
    if (content.children.length > 0) blocks.push(content)
    run = []
  }
  for (const node of nodes) {
    const read = blockOf(node)
    if (read === null) run.push(node)
    else {
      flush()
      for (const block of read) blocks.push(block)
    }
  }
  flush()
  return blocks
}

export function item(children: readonly Block[], checked: boolean | null): ListItem {
  return { type: 'listItem', spread: false, checked, children: [...children] }
}

/**
 * A list item of another format. A box character at its beginning becomes the state of a task; the writers put it there
 * where task lists are not allowed.
 */
export function unboxed(children: readonly Block[]): ListItem {
  const [first, ...rest] = children
  const [line, ...more] = first?.type === 'paragraph' ? first.children : []
  const box = line?.type === 'text' && /^([☐☑])(?:\s|$)/.exec(line.value)
  if (!box) return item(children, null)
  return item([paragraph([textNode(line.value.slice(box[0].length)), ...more]), ...rest], box[1] === '☑')
}

/** Emphasis with leading and trailing blanks moved outside, as Markdown requires. Empty content gets no emphasis. */
export function emphasised(type: 'strong' | 'emphasis' | 'delete', children: Inline[]): Inline[] {
  const before = startsBlank(children[0]) ? [textNode(' ')] : []
  const after = children.length > 0 && endsBlank(children.at(-1)) ? [textNode(' ')] : []
  const inner = trimmed(children).flatMap(child => (child.type === type ? child.children : [child]))
  return inner.length === 0 ? before : [...before, { type, children: inner }, ...after]
}

const startsBlank = (node: Inline | undefined) => node?.type === 'text' && /^\s/.test(node.value)
const endsBlank = (node: Inline | undefined) => node?.type === 'text' && /\s$/.test(node.value)

/** A table. If the first row is not a header, an empty header is added, because Markdown requires one. */
export function table(
  rows: readonly (readonly Block[][])[],
  hasHeader: boolean,
  align: readonly AlignType[] = [],
): Table[] {
  if (rows.length === 0) return []
  const width = rows.reduce((most, row) => Math.max(most, row.length), 1)
  const all = hasHeader ? rows : [Array.from({ length: width }, () => []), ...rows]
  const children = all.map(row => ({ type: 'tableRow' as const, children: row.map(cell) }))
  return [{ type: 'table', align: [...align], children }]
}

/** Whether the first row is empty, which marks a table without a header. */
export function isHeaderless({ children }: Table): boolean {
  return children.length > 1 && children[0]!.children.every(({ children: content }) => content.length === 0)
}

function cell(blocks: readonly Block[]): TableCell {
  const lines = blocks.map(flat).filter(line => line.length > 0)
  const children = lines.flatMap((line, at) => (at === 0 ? line : [{ type: 'break' } as const, ...line]))
  return { type: 'tableCell', children: children.map(asCellContent) }
}

/** A cell is one line of text, so its breaks are written as HTML. */
function asCellContent(node: Inline): Inline {
  if (node.type === 'break') return { type: 'html', value: '<br>' }
  return 'children' in node ? ({ ...node, children: node.children.map(asCellContent) } as Inline) : node
}

/** The inline content of a block, for places that allow nothing else. */
export function flat(block: Block): Inline[] {
  switch (block.type) {
    case 'paragraph':
    case 'heading':
      return block.children
    case 'code':
      return [{ type: 'inlineCode', value: block.value.replace(/\s+/g, ' ').trim() }]
    case 'list':
      return joined(block.children.map(item => [textNode('• '), ...joined(item.children.map(flat), textNode(' '))]))
    case 'blockquote':
      return joined(block.children.map(flat))
    case 'table':
      return joined(
        block.children.map(row =>
          joined(
            row.children.map(({ children }) => children),
            textNode(' | '),
          ),
        ),
      )
    default:
      return []
  }
}

function joined(lines: Inline[][], separator: Inline = { type: 'break' }): Inline[] {
  return lines.filter(line => line.length > 0).flatMap((line, at) => (at === 0 ? line : [separator, ...line]))
}
