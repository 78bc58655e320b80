// Converts Markdown to ADF, the Atlassian Document Format of Jira's texts. Jira refuses a document in which a node is
// in a place that its schema does not allow (a heading in a list item, marks on code), so such content becomes the
// nearest node that is allowed there.
// https://developer.atlassian.com/cloud/jira/platform/apis/document/structure/

import type { ListItem, Table } from 'mdast'
import { type Block, flat, type Inline, isHeaderless, mentioned } from '../markdown/markdown-tree.ts'
import { parseMarkdown } from '../markdown/parse-markdown.ts'

export interface AdfMark {
  type: string
  attrs?: Record<string, string>
}

/** A type instead of an interface, because an interface is not assignable to Json. */
export type AdfNode = {
  type: string
  version?: number
  attrs?: Record<string, string | number | boolean>
  content?: AdfNode[]
  marks?: { type: string; attrs?: Record<string, string> }[]
  text?: string
}

export async function markdownToAdf(markdown: string): Promise<AdfNode> {
  return { type: 'doc', version: 1, content: writeBlocks(parseMarkdown(markdown), true) }
}

/**
 * Writes blocks. `everywhere` is true at the top level, where every block is allowed; list items and quotes allow
 * fewer.
 */
function writeBlocks(blocks: readonly Block[], everywhere: boolean): AdfNode[] {
  return blocks.flatMap((block): AdfNode[] => {
    switch (block.type) {
      case 'paragraph':
        return writeParagraph(block.children)
      case 'heading':
        if (!everywhere) return writeParagraph([{ type: 'strong', children: block.children }])
        return [{ type: 'heading', attrs: { level: block.depth }, content: writeInline(block.children) }]
      case 'code': {
        const content = block.value ? [{ type: 'text', text: block.value }] : []
        return [{ type: 'codeBlock', ...(block.lang && { attrs: { language: block.lang } }), content }]
      }
      case 'blockquote': {
        const content = writeBlocks(block.children, false)
        if (!everywhere) return content
        return [{ type: 'blockquote', content: content.length > 0 ? content : [paragraphOf([])] }]
      }
      case 'list':
        if (everywhere && block.children.every(isTask)) return [writeTasks(block.children)]
        return [
          {
            type: block.ordered ? 'orderedList' : 'bulletList',
            ...(block.ordered && { attrs: { order: block.start ?? 1 } }),
            content: block.children.map(writeItem),
          },
        ]
      case 'table':
        return everywhere ? [writeTable(block)] : block.children.map(row => paragraphOf(flat(tableOf(row))))
      case 'thematicBreak':
        return everywhere ? [{ type: 'rule' }] : []
      default:
        return []
    }
  })
}

const tableOf = (row: Table['children'][number]): Table => ({ type: 'table', children: [row] })

const paragraphOf = (children: readonly Inline[]): AdfNode => ({ type: 'paragraph', content: writeInline(children) })

/** Jira shows an image as a block, so a paragraph that contains only an image becomes such a block. */
function writeParagraph(children: readonly Inline[]): AdfNode[] {
  const [only, ...rest] = children
  if (only?.type !== 'image' || rest.length > 0 || !/^https?:/.test(only.url)) return [paragraphOf(children)]
  const attrs = { type: 'external', url: only.url, ...(only.alt && { alt: only.alt }) }
  return [{ type: 'mediaSingle', attrs: { layout: 'center' }, content: [{ type: 'media', attrs }] }]
}

function startingWithText(content: AdfNode[]): AdfNode[] {
  const first = content[0]?.type
  return first === 'paragraph' || first === 'codeBlock' ? content : [{ type: 'paragraph', content: [] }, ...content]
}

function writeItem({ children, checked }: ListItem): AdfNode {
  const content = startingWithText(writeBlocks(children, false))
  if (typeof checked !== 'boolean') return { type: 'listItem', content }
  const box = { type: 'text', text: checked ? '☑ ' : '☐ ' }
  const [first, ...rest] = content as [AdfNode, ...AdfNode[]]
  if (first.type !== 'paragraph')
    return { type: 'listItem', content: [{ type: 'paragraph', content: [box] }, ...content] }
  return { type: 'listItem', content: [{ ...first, content: [box, ...(first.content ?? [])] }, ...rest] }
}

/** Whether a list item can become a task, which has only one line. */
function isTask({ checked, children: [first, ...rest] }: ListItem): boolean {
  return typeof checked === 'boolean' && (first === undefined || first.type === 'paragraph') && rest.length === 0
}

function writeTasks(items: readonly ListItem[]): AdfNode {
  const content = items.map(({ checked, children: [line] }) => ({
    type: 'taskItem',
    attrs: { localId: crypto.randomUUID(), state: checked ? 'DONE' : 'TODO' },
    content: writeInline(line ? flat(line) : []),
  }))
  return { type: 'taskList', attrs: { localId: crypto.randomUUID() }, content }
}

function writeTable(block: Table): AdfNode {
  const headerless = isHeaderless(block)
  const rows = headerless ? block.children.slice(1) : block.children
  const content = rows.map((row, at) => ({
    type: 'tableRow',
    content: row.children.map(({ children }) => ({
      type: at === 0 && !headerless ? 'tableHeader' : 'tableCell',
      content: [paragraphOf(children)],
    })),
  }))
  return { type: 'table', content }
}

const MARKS = { strong: 'strong', emphasis: 'em', delete: 'strike' } as const

function writeInline(nodes: readonly Inline[]): AdfNode[] {
  const merged: AdfNode[] = []
  for (const node of writeMarked(nodes, [])) {
    const last = merged.at(-1)
    const joins = last?.type === 'text' && node.type === 'text' && Bun.deepEquals(last.marks, node.marks)
    if (joins) merged[merged.length - 1] = { ...last, text: `${last.text}${node.text}` }
    else merged.push(node)
  }
  return merged
}

function writeMarked(nodes: readonly Inline[], marks: AdfMark[]): AdfNode[] {
  const written = (text: string, of = marks): AdfNode[] =>
    text ? [{ type: 'text', text: text.replace(/\s+/g, ' '), ...(of.length > 0 && { marks: of }) }] : []
  const linked = (url: string): AdfMark[] => [
    ...marks.filter(({ type }) => type !== 'link'),
    { type: 'link', attrs: { href: url } },
  ]
  return nodes.flatMap((node): AdfNode[] => {
    switch (node.type) {
      case 'text':
        return written(node.value)
      case 'inlineCode':
        return written(node.value, [...marks.filter(({ type }) => type === 'link'), { type: 'code' }])
      case 'strong':
      case 'emphasis':
      case 'delete': {
        const type = MARKS[node.type]
        return writeMarked(node.children, marks.some(mark => mark.type === type) ? marks : [...marks, { type }])
      }
      case 'link': {
        const id = mentioned(node.url)
        if (id === null) return writeMarked(node.children, linked(node.url))
        const [label] = writeInline(node.children)
        return [{ type: 'mention', attrs: { id, text: label?.text ?? `@${id}` } }]
      }
      case 'image':
        return written(node.alt || node.url, /^https?:/.test(node.url) ? linked(node.url) : marks)
      case 'break':
        return [{ type: 'hardBreak' }]
      default:
        return []
    }
  })
}
