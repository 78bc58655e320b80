// Converts ADF to Markdown. Any document can be read: a node that Markdown cannot express becomes its text.
// https://developer.atlassian.com/cloud/jira/platform/apis/document/structure/

import type { ListItem } from 'mdast'
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
  printMarkdown,
  quote,
  table,
  textNode,
  unboxed,
} from '../markdown/markdown.ts'
import type { AdfMark, AdfNode } from './adf-write.ts'

/** The document as Markdown. Null and undefined, which Jira gives for an empty field, become an empty text. */
export async function adfToMarkdown(document: AdfNode | null | undefined): Promise<string> {
  return printMarkdown(document ? readBlocks(shallow(document).content ?? []) : [])
}

/** Replaces nodes that are nested too deeply with their text. */
function shallow(node: AdfNode, depth = 0): AdfNode {
  if (!Array.isArray(node.content)) return { ...node, content: [] }
  if (depth < DEEPEST) return { ...node, content: node.content.map(child => shallow(child, depth + 1)) }
  return { type: 'paragraph', content: [{ type: 'text', text: textOf(node) }] }
}

function textOf(node: AdfNode): string {
  const found: string[] = []
  const open = [node]
  for (let next = open.pop(); next; next = open.pop()) {
    if (next.text) found.push(next.text)
    open.push(...(next.content ?? []).toReversed())
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
      const value = content.map(({ text = '' }) => text).join('')
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
      const rows = content.map(row => (row.content ?? []).map(cell => readBlocks(cell.content ?? [])))
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

const readItems = (content: readonly AdfNode[]): ListItem[] =>
  content.map(({ content: inside = [] }) => unboxed(readBlocks(inside)))

/** In ADF a nested task list is a sibling of the items. It belongs to the item before it. */
function readTasks(content: readonly AdfNode[]): ListItem[] {
  const items: ListItem[] = []
  for (const node of content) {
    if (node.type === 'taskItem') items.push(item(readBlocks(node.content ?? []), node.attrs?.state === 'DONE'))
    else if (items.length > 0) items.at(-1)!.children.push(...readBlocks([node]))
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
  const read: Inline[] = []
  for (let at = 0; at < nodes.length; ) {
    const mark = outermost(nodes[at]!)
    if (!mark) {
      read.push(...readLeaf(nodes[at++]!))
      continue
    }
    const run: AdfNode[] = []
    for (let same: AdfMark | undefined = mark; same && isSame(same, mark); same = nodes[at] && outermost(nodes[at]!)) {
      const { marks = [], ...node } = nodes[at++]!
      run.push({ ...node, marks: marks.filter(other => !isSame(other, mark)) })
    }
    if (mark.type === 'link') read.push(link(mark.attrs?.href ?? '', readInline(run)))
    else if (mark.type === 'code') read.push({ type: 'inlineCode', value: run.map(({ text = '' }) => text).join('') })
    else read.push(...emphasised(WRAPPERS[mark.type]!, readInline(run)))
  }
  return read
}

function outermost({ marks = [] }: AdfNode): AdfMark | undefined {
  for (const type of NESTING) {
    const found = marks.find(mark => mark.type === type)
    if (found) return found
  }
  return undefined
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
