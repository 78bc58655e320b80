// Converts ADF to Markdown. Any document can be read: a node that Markdown cannot express becomes its text.
// https://developer.atlassian.com/cloud/jira/platform/apis/document/structure/

import type { ListItem } from 'mdast'
import { isObject } from '../../json.ts'
import {
  type Block,
  blocksWith,
  DEEPEST,
  emphasised,
  heading,
  type Inline,
  image,
  item,
  link,
  mention,
  paragraph,
  quote,
  table,
  textNode,
  unboxed,
} from '../markdown/markdown-tree.ts'
import { printMarkdown } from '../markdown/print-markdown.ts'
import type { AdfMark, AdfNode } from './adf-write.ts'

/**
 * The document as Markdown. Null and undefined, which Jira gives for an empty field, become an empty text. What is
 * nested deeper than `DEEPEST` keeps its text, without blocks and marks.
 */
export async function adfToMarkdown(document: AdfNode | null | undefined): Promise<string> {
  return printMarkdown(readBlocks(nodesIn({ content: [document] }, 0)[0]?.content ?? []))
}

/**
 * The children of a node as they may be read: objects with the fields of a node, each mark at most once, and what is
 * nested too deeply as text. Whatever else a vendor sends is left out here, so that the readers need not look.
 */
function nodesIn({ content }: { content?: unknown }, depth: number): AdfNode[] {
  if (!Array.isArray(content)) return []
  return content.filter(isObject).map(node => {
    const { type, text, attrs, marks } = node
    const read: AdfNode = {
      type: typeof type === 'string' ? type : '',
      ...(typeof text === 'string' && { text }),
      ...(isObject(attrs) && { attrs: simple(attrs) }),
    }
    const own = marksIn(marks)
    if (own.length > 0) read.marks = own
    if (depth < DEEPEST || !Array.isArray(node.content)) return { ...read, content: nodesIn(node, depth + 1) }
    return { type: 'paragraph', content: [{ type: 'text', text: textOf(node) }] }
  })
}

/** The attributes that are no objects. */
function simple(attrs: Record<string, unknown>): NonNullable<AdfNode['attrs']> {
  const simple = Object.entries(attrs).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value))
  return Object.fromEntries(simple) as NonNullable<AdfNode['attrs']>
}

/** The marks of a text that Markdown has, in the order in which they are nested. A text has each of them once. */
function marksIn(marks: unknown): AdfMark[] {
  if (!Array.isArray(marks)) return []
  const found = new Map<unknown, AdfMark>()
  for (const mark of marks) {
    if (!isObject(mark) || found.has(mark.type) || !NESTING.includes(mark.type as string)) continue
    const href = isObject(mark.attrs) && typeof mark.attrs.href === 'string' ? mark.attrs.href : ''
    found.set(mark.type, { type: mark.type as string, ...(mark.type === 'link' && { attrs: { href } }) })
  }
  return NESTING.flatMap(type => found.get(type) ?? [])
}

/** The text of a node and of all that is inside it. */
function textOf(node: Record<string, unknown>): string {
  const found: string[] = []
  const open: unknown[] = [node]
  while (open.length > 0) {
    const next = open.pop()
    if (!isObject(next)) continue
    if (typeof next.text === 'string') found.push(next.text)
    const content = Array.isArray(next.content) ? next.content : []
    for (let at = content.length - 1; at >= 0; at--) open.push(content[at])
  }
  return found.join('')
}

const INLINE = ['text', 'hardBreak', 'mention', 'emoji', 'status', 'date', 'inlineCard', 'mediaInline']

function readBlocks(nodes: readonly AdfNode[]): Block[] {
  return blocksWith(nodes, node => (INLINE.includes(node.type) ? null : readBlock(node)), readInline)
}

function readBlock(node: AdfNode): Block[] {
  const content = node.content ?? []
  switch (node.type) {
    case 'paragraph': {
      const read = paragraph(readInline(content))
      return read.children.length > 0 ? [read] : []
    }
    case 'heading':
      return [heading(Number(node.attrs?.level ?? 1), readInline(content))]
    case 'codeBlock': {
      const value = content.map(textOf).join('')
      return [{ type: 'code', lang: (node.attrs?.language as string | undefined) ?? null, value }]
    }
    case 'blockquote':
    case 'panel':
      return [quote(readBlocks(content))]
    case 'bulletList':
    case 'decisionList':
      return [{ type: 'list', ordered: false, spread: false, children: readItems(content) }]
    case 'orderedList': {
      const start = Number(node.attrs?.order ?? 1)
      return [{ type: 'list', ordered: true, start, spread: false, children: readItems(content) }]
    }
    case 'taskList':
      return [{ type: 'list', ordered: false, spread: false, children: readTasks(content) }]
    case 'table': {
      const rows = content.map(row =>
        inside(row, 'tableRow').map(cell => readBlocks(inside(cell, 'tableCell', 'tableHeader'))),
      )
      const first = content[0]?.content ?? []
      return table(rows, first.length > 0 && first.every(({ type }) => type === 'tableHeader'))
    }
    case 'rule':
      return [{ type: 'thematicBreak' }]
    case 'mediaSingle':
    case 'mediaGroup':
      return [paragraph(readInline(content))]
    case 'expand':
    case 'nestedExpand': {
      const title = node.attrs?.title
      const above = title ? [paragraph([{ type: 'strong', children: [textNode(`${title}`)] }])] : []
      return [...above, ...readBlocks(content)]
    }
    case 'blockCard':
    case 'embedCard':
      return [paragraph(readInline([{ ...node, type: 'inlineCard' }]))]
    default:
      return readBlocks(content)
  }
}

/** What a row or cell contains; a node that is in its place is the only thing in it. */
const inside = (node: AdfNode, ...types: readonly string[]): readonly AdfNode[] =>
  types.includes(node.type) ? (node.content ?? []) : [node]

const readItems = (content: readonly AdfNode[]): ListItem[] =>
  content.map(({ content: inside = [] }) => unboxed(readBlocks(inside)))

/** In ADF a nested task list is a sibling of the items. It belongs to the item before it. */
function readTasks(content: readonly AdfNode[]): ListItem[] {
  const items: ListItem[] = []
  for (const node of content) {
    const above = items.at(-1)
    if (node.type === 'taskItem') items.push(item(readBlocks(node.content ?? []), node.attrs?.state === 'DONE'))
    else if (above) above.children = above.children.concat(readBlocks([node]))
    else items.push(item(readBlocks([node]), null))
  }
  return items
}

const WRAPPERS: Record<string, 'strong' | 'emphasis' | 'delete'> = {
  strong: 'strong',
  em: 'emphasis',
  strike: 'delete',
}
const NESTING = ['link', 'strong', 'em', 'strike', 'code']

/**
 * ADF lists the marks of each text, while the tree nests them. Neighbouring texts with the same outermost mark are
 * wrapped together.
 */
function readInline(nodes: readonly AdfNode[]): Inline[] {
  const read: Inline[][] = []
  for (let at = 0; at < nodes.length; ) {
    const mark = nodes[at]!.marks?.[0]
    if (!mark) {
      read.push(readLeaf(nodes[at++]!))
      continue
    }
    const run: AdfNode[] = []
    for (let same: AdfMark | undefined = mark; same && isSame(same, mark); same = nodes[at]?.marks?.[0]) {
      const { marks = [], ...node } = nodes[at++]!
      run.push({ ...node, marks: marks.slice(1) })
    }
    if (mark.type === 'link') read.push([link(mark.attrs?.href ?? '', readInline(run))])
    else if (mark.type === 'code') read.push([{ type: 'inlineCode', value: run.map(textOf).join('') }])
    else read.push(emphasised(WRAPPERS[mark.type]!, readInline(run)))
  }
  return read.flat()
}

const isSame = (a: AdfMark, b: AdfMark) => a.type === b.type && a.attrs?.href === b.attrs?.href

function readLeaf({ type, text = '', attrs = {}, content = [] }: AdfNode): Inline[] {
  switch (type) {
    case 'text':
      return text ? [textNode(text.replace(/\s+/g, ' '))] : []
    case 'hardBreak':
      return [{ type: 'break' }]
    case 'mention':
      return [mention(`${attrs.id}`, `${attrs.text || attrs.id}`)]
    case 'emoji':
      return [textNode(`${attrs.text || attrs.shortName || ''}`)]
    case 'status':
      return [textNode(`${attrs.text ?? ''}`)]
    case 'date': {
      const time = new Date(Number(attrs.timestamp))
      return Number.isNaN(time.getTime()) ? [] : [textNode(time.toISOString().slice(0, 10))]
    }
    case 'inlineCard':
    case 'blockCard':
      return attrs.url ? [link(`${attrs.url}`, [textNode(`${attrs.url}`)])] : []
    case 'media':
    case 'mediaInline':
      return [image(attrs.url ? `${attrs.url}` : `attachment:${attrs.id ?? ''}`, `${attrs.alt ?? ''}`)]
    default:
      return readInline(content)
  }
}
