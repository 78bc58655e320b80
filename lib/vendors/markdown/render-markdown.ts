// Writes Markdown as the HTML of notes and as the text of chat messages, from the same tree as the other formats. Text
// from people stays text: raw HTML is shown as it was written, and a link keeps its target only if it leads to a page, an
// address or a number. Each line is written once, whatever it is nested in.

import type { ListItem, Table } from 'mdast'
import type { Block, Inline } from './markdown-tree.ts'
import { parseMarkdown } from './parse-markdown.ts'

const FOR_PEOPLE = /^(https?|mailto|tel):/i

/** HTML with the elements that every editor of rich text knows. A line break in a paragraph stays a line break. */
export function markdownToHtml(text: string): string {
  return htmlOf(parseMarkdown(text))
}

const htmlOf = (blocks: readonly Block[]): string => blocks.map(htmlOfBlock).join('')

function htmlOfBlock(block: Block): string {
  switch (block.type) {
    case 'paragraph':
      return `<p>${htmlOfInline(block.children)}</p>`
    case 'heading':
      return `<h${block.depth}>${htmlOfInline(block.children)}</h${block.depth}>`
    case 'code':
      return `<pre><code>${Bun.escapeHTML(block.value)}</code></pre>`
    case 'blockquote':
      return `<blockquote>${htmlOf(block.children)}</blockquote>`
    case 'list': {
      const items = block.children.map(htmlOfItem).join('')
      if (!block.ordered) return `<ul>${items}</ul>`
      return `<ol${block.start === 1 ? '' : ` start="${block.start}"`}>${items}</ol>`
    }
    case 'table':
      return htmlOfTable(block)
    case 'thematicBreak':
      return '<hr>'
    default:
      return ''
  }
}

/** An item with only one paragraph needs no element for it. */
function htmlOfItem({ checked, children }: ListItem): string {
  const [first, ...rest] = children
  const isOneLine = first?.type === 'paragraph' && !rest.some(({ type }) => type === 'paragraph')
  const content = isOneLine ? htmlOfInline(first.children) + htmlOf(rest) : htmlOf(children)
  return `<li>${boxOf(checked)}${content}</li>`
}

function htmlOfTable({ children: [head, ...rows] }: Table): string {
  const row = (tag: string, { children }: Table['children'][number]) =>
    `<tr>${children.map(cell => `<${tag}>${htmlOfInline(cell.children)}</${tag}>`).join('')}</tr>`
  const body = rows.length > 0 ? `<tbody>${rows.map(each => row('td', each)).join('')}</tbody>` : ''
  return `<table>${head ? `<thead>${row('th', head)}</thead>` : ''}${body}</table>`
}

const HTML_MARKS = { strong: 'strong', emphasis: 'em', delete: 's' } as const

function htmlOfInline(nodes: readonly Inline[]): string {
  return nodes.map(htmlOfLeaf).join('')
}

function htmlOfLeaf(node: Inline): string {
  switch (node.type) {
    case 'text':
      return Bun.escapeHTML(node.value).replaceAll('\n', '<br>')
    case 'inlineCode':
      return `<code>${Bun.escapeHTML(node.value)}</code>`
    case 'strong':
    case 'emphasis':
    case 'delete': {
      const tag = HTML_MARKS[node.type]
      return `<${tag}>${htmlOfInline(node.children)}</${tag}>`
    }
    case 'link':
      return htmlOfLink(node.url, htmlOfInline(node.children))
    case 'image':
      return htmlOfLink(node.url, Bun.escapeHTML(node.alt || (FOR_PEOPLE.test(node.url) ? node.url : '')))
    case 'break':
      return '<br>'
    default:
      return ''
  }
}

const htmlOfLink = (url: string, children: string): string =>
  FOR_PEOPLE.test(url) ? `<a href="${Bun.escapeHTML(url)}">${children}</a>` : children

/** How a chat writes marks. */
export interface ChatMarks {
  /** Makes a text from people harmless. */
  text(plain: string): string
  strong: string
  emphasis: string
  /** Empty when the chat has no such mark. */
  strikethrough: string
  code: string
  block: string
}

/**
 * Text for a chat. The target of a link stands after its words, so that no words can hide where the link leads; headings
 * are strong, and a table has a line for each row. A text of marks alone is written as it stands, because no chat takes
 * an empty message.
 */
export function markdownToChat(text: string, marks: ChatMarks): string {
  return new ChatWriter(marks).blocks(parseMarkdown(text), '').trim() || marks.text(text.trim())
}

class ChatWriter {
  readonly #marks: ChatMarks

  constructor(marks: ChatMarks) {
    this.#marks = marks
  }

  /** `prefix` begins each line but the first, which the caller has begun. */
  blocks(blocks: readonly Block[], prefix: string): string {
    const written = blocks.map(block => this.#block(block, prefix, 0)).filter(Boolean)
    return written.join(`\n${prefix}\n${prefix}`)
  }

  /** `depth`: the number of lists around the block. */
  #block(block: Block, prefix: string, depth: number): string {
    const { strong, block: fence, text } = this.#marks
    const on = (lines: string) => (prefix ? lines.replaceAll('\n', `\n${prefix}`) : lines)
    switch (block.type) {
      case 'paragraph':
        return on(this.#inline(block.children))
      case 'heading':
        return on(around(strong, this.#inline(block.children)))
      case 'code': {
        const code = text(block.value)
        return on(fence ? `${fence}\n${code}\n${fence}` : code)
      }
      case 'blockquote': {
        const quoted = this.blocks(block.children, `${prefix}> `)
        return quoted && `> ${quoted}`
      }
      case 'list': {
        const items = block.children.map((item, at) => {
          const bullet = block.ordered ? `${(block.start ?? 1) + at}.` : '•'
          return `${bullet} ${boxOf(item.checked)}${this.#item(item, prefix, depth)}`
        })
        return items.join(`\n${prefix}${INDENT.repeat(depth)}`)
      }
      case 'table': {
        const rows = block.children.map(({ children }, at) => {
          const cells = children.map(cell => this.#inline(cell.children).replaceAll('\n', ' '))
          return (at === 0 ? cells.map(cell => around(strong, cell)) : cells).join(' | ').trim()
        })
        return on(rows.join('\n'))
      }
      case 'thematicBreak':
        return '———'
      default:
        return ''
    }
  }

  /** The blocks of an item, without empty lines between them. Lists in it begin further to the right. */
  #item({ children }: ListItem, prefix: string, depth: number): string {
    let written = ''
    for (const child of children) {
      const text = this.#block(child, prefix, depth + 1)
      const indent = child.type === 'list' ? INDENT.repeat(depth + 1) : ''
      if (text) written += written ? `\n${prefix}${indent}${text}` : text
    }
    return written
  }

  /** Neighbouring texts are made harmless as one, because what is dangerous may begin in one and end in the next. */
  #inline(nodes: readonly Inline[]): string {
    const written: string[] = []
    let plain = ''
    const flush = () => {
      if (plain) written.push(this.#marks.text(plain))
      plain = ''
    }
    for (const node of nodes) {
      if (node.type === 'text') plain += node.value
      else if (node.type === 'break') plain += '\n'
      else {
        flush()
        written.push(this.#leaf(node))
      }
    }
    flush()
    return written.join('')
  }

  #leaf(node: Inline): string {
    const { strong, emphasis, strikethrough, code, text } = this.#marks
    switch (node.type) {
      case 'inlineCode':
        return around(code, text(node.value))
      case 'strong':
        return around(strong, this.#inline(node.children))
      case 'emphasis':
        return around(emphasis, this.#inline(node.children))
      case 'delete':
        return around(strikethrough, this.#inline(node.children))
      case 'link':
        return this.#target(this.#inline(node.children), node.url)
      case 'image':
        return this.#target(text(node.alt ?? ''), node.url)
      default:
        return ''
    }
  }

  #target(words: string, url: string): string {
    if (!FOR_PEOPLE.test(url)) return words
    const shown = this.#marks.text(url)
    if (words === shown || words === this.#marks.text(url.replace(/^(https?:\/\/|mailto:)/i, ''))) return words
    return words.trim() ? `${words} (${shown})` : shown
  }
}

const INDENT = '    '

const around = (mark: string, words: string): string => (words.trim() ? `${mark}${words}${mark}` : words)

function boxOf(checked: boolean | null | undefined): string {
  return typeof checked === 'boolean' ? (checked ? '☑ ' : '☐ ') : ''
}
