// Converts Markdown to storage format, the XHTML in which Confluence stores pages.
// https://confluence.atlassian.com/doc/confluence-storage-format-790796544.html

import type { ListItem, Table } from 'mdast'
import { type Block, flat, type Inline, isHeaderless, mentioned } from '../markdown/markdown-tree.ts'
import { parseMarkdown } from '../markdown/parse-markdown.ts'

export async function markdownToStorage(markdown: string): Promise<string> {
  return writeBlocks(parseMarkdown(markdown))
}

/**
 * Escapes text and attribute values. XML allows no control characters except tab and line ends, not even escaped ones,
 * so they are removed.
 */
export function escapeXml(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

function cdata(text: string): string {
  const clean = text.toWellFormed().replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '')
  return `<![CDATA[${clean.replaceAll(']]>', ']]]]><![CDATA[>')}]]>`
}

function writeBlocks(blocks: readonly Block[]): string {
  return blocks.map(writeBlock).join('')
}

function writeBlock(block: Block): string {
  switch (block.type) {
    case 'paragraph':
      return `<p>${writeInline(block.children)}</p>`
    case 'heading':
      return `<h${block.depth}>${writeInline(block.children)}</h${block.depth}>`
    case 'code': {
      const language = block.lang ? `<ac:parameter ac:name="language">${escapeXml(block.lang)}</ac:parameter>` : ''
      const body = `<ac:plain-text-body>${cdata(block.value)}</ac:plain-text-body>`
      return `<ac:structured-macro ac:name="code">${language}${body}</ac:structured-macro>`
    }
    case 'blockquote':
      return `<blockquote>${writeBlocks(block.children)}</blockquote>`
    case 'list': {
      if (block.children.every(isTask)) return writeTasks(block.children)
      const start = block.ordered && (block.start ?? 1) !== 1 ? ` start="${block.start}"` : ''
      const tag = block.ordered ? 'ol' : 'ul'
      return `<${tag}${start}>${block.children.map(writeItem).join('')}</${tag}>`
    }
    case 'table':
      return writeTable(block)
    case 'thematicBreak':
      return '<hr />'
    default:
      return ''
  }
}

function writeItem({ children, checked }: ListItem): string {
  const box = typeof checked === 'boolean' ? (checked ? '☑ ' : '☐ ') : ''
  const [first, ...rest] = children
  if (first?.type === 'paragraph') return `<li><p>${box}${writeInline(first.children)}</p>${writeBlocks(rest)}</li>`
  return `<li>${box && `<p>${box}</p>`}${writeBlocks(children)}</li>`
}

/** Whether a list item can become a task, which has only one line. */
function isTask({ checked, children: [first, ...rest] }: ListItem): boolean {
  return typeof checked === 'boolean' && (first === undefined || first.type === 'paragraph') && rest.length === 0
}

function writeTasks(items: readonly ListItem[]): string {
  const tasks = items.map(({ checked, children: [line] }) => {
    const status = `<ac:task-status>${checked ? 'complete' : 'incomplete'}</ac:task-status>`
    return `<ac:task>${status}<ac:task-body>${writeInline(line ? flat(line) : [])}</ac:task-body></ac:task>`
  })
  return `<ac:task-list>${tasks.join('')}</ac:task-list>`
}

function writeTable(table: Table): string {
  const headerless = isHeaderless(table)
  const rows = (headerless ? table.children.slice(1) : table.children).map((row, at) => {
    const tag = at === 0 && !headerless ? 'th' : 'td'
    const cells = row.children.map(({ children }, column) => {
      const side = table.align?.[column]
      const style = side ? ` style="text-align: ${side};"` : ''
      return `<${tag}><p${style}>${writeInline(children)}</p></${tag}>`
    })
    return `<tr>${cells.join('')}</tr>`
  })
  return `<table><tbody>${rows.join('')}</tbody></table>`
}

function writeInline(nodes: readonly Inline[]): string {
  return nodes.map(writeLeaf).join('')
}

function writeLeaf(node: Inline): string {
  switch (node.type) {
    case 'text':
      return escapeXml(node.value.replace(/\s+/g, ' '))
    case 'inlineCode':
      return `<code>${escapeXml(node.value)}</code>`
    case 'strong':
      return `<strong>${writeInline(node.children)}</strong>`
    case 'emphasis':
      return `<em>${writeInline(node.children)}</em>`
    case 'delete':
      return `<span style="text-decoration: line-through;">${writeInline(node.children)}</span>`
    case 'link':
      return writeLink(node.url, node.children)
    case 'image': {
      const alt = node.alt ? ` ac:alt="${escapeXml(node.alt)}"` : ''
      const target = /^https?:/i.test(node.url) ? `<ri:url ri:value="${escapeXml(node.url)}" />` : attachment(node.url)
      return `<ac:image${alt}>${target}</ac:image>`
    }
    case 'break':
      return '<br />'
    default:
      return ''
  }
}

function writeLink(url: string, children: readonly Inline[]): string {
  const id = mentioned(url)
  if (id !== null) return `<ac:link><ri:user ri:account-id="${escapeXml(id)}" /></ac:link>`
  const body = `<ac:link-body>${writeInline(children)}</ac:link-body>`
  const page = /^page:(?:([^/]+)\/)?([^/]+)$/.exec(url)
  if (page) {
    const space = page[1] ? ` ri:space-key="${escapeXml(decoded(page[1]))}"` : ''
    return `<ac:link><ri:page ri:content-title="${escapeXml(decoded(page[2]!))}"${space} />${body}</ac:link>`
  }
  if (url.startsWith('attachment:')) return `<ac:link>${attachment(url)}${body}</ac:link>`
  return `<a href="${escapeXml(url)}">${writeInline(children)}</a>`
}

/** An attachment of the page, which Confluence identifies by its bare file name. */
function attachment(url: string): string {
  const name = decoded(url.replace(/^attachment:/, ''))
    .split('/')
    .at(-1)!
  return `<ri:attachment ri:filename="${escapeXml(name)}" />`
}

/** Decodes a URL. A percent sign that encodes nothing is kept. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
