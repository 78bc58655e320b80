// Markdown (GitHub's flavour) as mdast, the tree between the formats of vendors (adf.ts, storage.ts) and people.
// What Markdown cannot say stands in links with schemes of our own, so that it survives a round trip:
// `[@Ada](accountid:5b10a2)` is a mention, `[text](page:KEY/Title)` another page, `attachment:name` a file of the page.

import type {
  BlockContent,
  DefinitionContent,
  Nodes,
  Paragraph,
  PhrasingContent,
  Root,
  RootContent,
  Table,
  TableCell,
} from 'mdast'

export type Block = RootContent
export type Inline = PhrasingContent

/** What a link may lead to; the text of any other (`javascript:` …) stays, its target is dropped. */
const SCHEME =
  /^((https?|tel|ftp|accountid|page|attachment):|mailto:[^\s@<>]+@[a-z0-9-]+(\.[a-z0-9-]+)*|(?![a-z][a-z0-9+.-]*:))/i
const LINE_BREAK = /^<br\s*\/?>$/i
const COMMENT = /^<!--[\s\S]*-->$/

/** The tree of a text: references resolved; raw HTML is text, except `<br>` and comments, which vanish. */
export async function parseMarkdown(text: string): Promise<Root> {
  const [{ fromMarkdown }, { gfmFromMarkdown }, { gfm }] = await Promise.all([
    import('mdast-util-from-markdown'),
    import('mdast-util-gfm'),
    import('micromark-extension-gfm'),
  ])
  const root = fromMarkdown(text, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] })
  const definitions = new Map<string, string>()
  collect(root, definitions)
  return { type: 'root', children: settle(root.children, definitions, true) as Block[] }
}

function collect(node: Nodes, definitions: Map<string, string>): void {
  if (node.type === 'definition' && !definitions.has(node.identifier)) definitions.set(node.identifier, node.url)
  if ('children' in node) for (const child of node.children) collect(child, definitions)
}

/** Leaves only what the writers know. `asBlocks`: text must stand in a paragraph here. */
function settle(nodes: readonly Nodes[], definitions: Map<string, string>, asBlocks: boolean): Nodes[] {
  const inside = (node: { children: readonly Nodes[] }, blocks = false) => settle(node.children, definitions, blocks)
  return nodes.flatMap((node): Nodes[] => {
    switch (node.type) {
      case 'html':
        if (COMMENT.test(node.value)) return []
        if (LINE_BREAK.test(node.value) && !asBlocks) return [{ type: 'break' }]
        return asBlocks ? [paragraph([textNode(node.value)])] : [textNode(node.value)]
      case 'definition':
        return []
      case 'link':
      case 'linkReference': {
        const url = node.type === 'link' ? node.url : (definitions.get(node.identifier) ?? '')
        const children = inside(node) as never
        return SCHEME.test(url) ? [{ type: 'link', url, children }] : children
      }
      case 'image':
      case 'imageReference': {
        const url = node.type === 'image' ? node.url : (definitions.get(node.identifier) ?? '')
        return SCHEME.test(url) ? [image(url, node.alt ?? '')] : [textNode(node.alt ?? '')]
      }
      case 'footnoteReference':
        return [textNode(`[${node.identifier}]`)]
      case 'footnoteDefinition':
        return [paragraph([textNode(`[${node.identifier}]`)]), ...inside(node, true)]
      default: {
        if (!('children' in node)) return [node]
        const holdsBlocks = node.type === 'blockquote' || node.type === 'listItem'
        return [{ ...node, children: inside(node, holdsBlocks) } as Nodes]
      }
    }
  })
}

/** The text of a tree. Ends with a newline, unless it is empty. */
export async function printMarkdown(blocks: readonly Block[]): Promise<string> {
  const [{ toMarkdown }, { gfmToMarkdown }] = await Promise.all([
    import('mdast-util-to-markdown'),
    import('mdast-util-gfm'),
  ])
  return toMarkdown(
    { type: 'root', children: [...blocks] },
    {
      bullet: '-',
      rule: '-',
      listItemIndent: 'one',
      extensions: [gfmToMarkdown({ tablePipeAlign: false })],
    },
  )
}

export const textNode = (value: string): Inline => ({ type: 'text', value })

export const image = (url: string, alt: string): Inline => ({ type: 'image', url, alt })

export const link = (url: string, children: Inline[]): Inline => ({ type: 'link', url, children: children as never })

export const mention = (id: string, name: string): Inline =>
  link(`accountid:${id}`, [textNode(name.startsWith('@') ? name : `@${name}`)])

/** The account that a link mentions, or null. */
export function mentioned(url: string): string | null {
  return url.startsWith('accountid:') ? url.slice('accountid:'.length) : null
}

/** A paragraph without blanks and breaks at its ends, where Markdown would have to spell them out. */
export function paragraph(children: readonly Inline[]): Paragraph {
  return { type: 'paragraph', children: trimmed(children) }
}

export function trimmed(children: readonly Inline[]): Inline[] {
  const kept = [...children]
  for (const [at, trim] of [
    [0, (text: string) => text.trimStart()],
    [-1, (text: string) => text.trimEnd()],
  ] as const) {
    for (let edge = kept.at(at); edge; edge = kept.at(at)) {
      const value = edge.type === 'text' ? trim(edge.value) : ''
      if (edge.type !== 'break' && edge.type !== 'text') break
      kept.splice(at, 1, ...(value ? [textNode(value)] : []))
      if (value) break
    }
  }
  return kept
}

/** Emphasis with its outer blanks outside, where Markdown wants them; nothing around nothing. */
export function emphasised(type: 'strong' | 'emphasis' | 'delete', children: Inline[]): Inline[] {
  const before = startsBlank(children[0]) ? [textNode(' ')] : []
  const after = children.length > 0 && endsBlank(children.at(-1)) ? [textNode(' ')] : []
  const inner = trimmed(children)
  return inner.length === 0 ? before : [...before, { type, children: inner }, ...after]
}

const startsBlank = (node: Inline | undefined) => node?.type === 'text' && /^\s/.test(node.value)
const endsBlank = (node: Inline | undefined) => node?.type === 'text' && /\s$/.test(node.value)

/** A table of rows of cells. One whose first row is no header gets an empty header, which Markdown cannot do without. */
export function table(rows: readonly (readonly Block[][])[], hasHeader: boolean): Table[] {
  if (rows.length === 0) return []
  const width = Math.max(...rows.map(row => row.length), 1)
  const all = hasHeader ? rows : [Array.from({ length: width }, () => []), ...rows]
  const children = all.map(row => ({ type: 'tableRow' as const, children: row.map(cell) }))
  return [{ type: 'table', align: [], children }]
}

/** Whether the first row says nothing: the mark of a table without a header. */
export function isHeaderless({ children }: Table): boolean {
  return children.length > 1 && children[0]!.children.every(({ children: content }) => content.length === 0)
}

function cell(blocks: readonly Block[]): TableCell {
  const lines = blocks.map(flat).filter(line => line.length > 0)
  const children = lines.flatMap((line, at) => (at === 0 ? line : [{ type: 'break' } as const, ...line]))
  return { type: 'tableCell', children: children.map(asCellContent) }
}

/** A cell is one line of text: its breaks are written as HTML. */
function asCellContent(node: Inline): Inline {
  if (node.type === 'break') return { type: 'html', value: '<br>' }
  return 'children' in node ? ({ ...node, children: node.children.map(asCellContent) } as Inline) : node
}

/** The inline content of a block, for places that hold nothing else. */
export function flat(block: Block | BlockContent | DefinitionContent): Inline[] {
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
