// Parses GitHub Flavored Markdown into mdast with Bun's parser, which takes a fraction of a second per mebibyte at any
// nesting. The tree contains only nodes that the writers of other formats support: references are resolved, raw HTML
// becomes text except `<br>` and comments, and links with a scheme that is not for people lose their target. A footnote
// is kept as it was written.

import type { Block, Inline } from './markdown-tree.ts'
import {
  blocksWith,
  DEEPEST,
  emphasised,
  heading,
  image,
  item,
  link,
  paragraph,
  quote,
  textNode,
} from './markdown-tree.ts'

/** An element as Bun's parser returns it: in React's form, with the names of HTML. */
interface Element {
  type: string
  props: {
    children?: Node[] | null
    start?: number
    checked?: boolean
    language?: string
    align?: 'left' | 'center' | 'right'
    href?: string
    src?: string
    alt?: string
  }
}
type Node = Element | string

/** The schemes that a link may have. Of a link with any other scheme, such as `javascript:`, only the text is kept. */
const SCHEME =
  /^((https?|tel|ftp|accountid|page|attachment):|mailto:[^\s@<>]+@[a-z0-9-]+(\.[a-z0-9-]+)*|(?![a-z][a-z0-9+.-]*:))/i
const LINE_BREAK = /^<br\s*\/?>$/i
const COMMENT = /^<!--[\s\S]*-->$/
const HEADING = /^h([1-6])$/
const MARKS: Record<string, 'strong' | 'emphasis' | 'delete'> = { strong: 'strong', em: 'emphasis', del: 'delete' }

export function parseMarkdown(text: string): Block[] {
  const root = Bun.markdown.react(text, undefined, { autolinks: true }) as Element
  return blocksOf(root.props.children, 0)
}

function blocksOf(nodes: Element['props']['children'], depth: number): Block[] {
  if (depth > DEEPEST) return paragraphOf(textOf(nodes))
  return blocksWith(
    nodes ?? [],
    node => (typeof node === 'string' ? null : blockOf(node, depth + 1)),
    run => inlineOf(run, depth + 1),
  )
}

/** The blocks of an element; null for inline content. */
function blockOf({ type, props }: Element, depth: number): Block[] | null {
  const { children, start = 1, language } = props
  const level = HEADING.exec(type)?.[1]
  if (level) return [heading(Number(level), inlineOf(children, depth))]
  switch (type) {
    case 'p':
      return [paragraph(inlineOf(children, depth))]
    case 'pre':
      return [{ type: 'code', lang: language ? spelled(language) : null, value: textOf(children).replace(/\n$/, '') }]
    case 'blockquote':
      return [quote(blocksOf(children, depth))]
    case 'ul':
    case 'ol': {
      const items = elements(children).map(({ props: { checked = null, children: inside } }) =>
        item(blocksOf(inside, depth), checked),
      )
      const ordered = type === 'ol'
      return [{ type: 'list', ordered, start: ordered ? start : null, spread: false, children: items }]
    }
    case 'table':
      return [tableOf(children, depth)]
    case 'hr':
      return [{ type: 'thematicBreak' }]
    case 'html': {
      const raw = textOf(children).trim()
      return COMMENT.test(raw) || LINE_BREAK.test(raw) ? [] : paragraphOf(raw)
    }
    default:
      return null
  }
}

function tableOf(children: Element['props']['children'], depth: number): Block {
  const rows = elements(children).flatMap(({ props }) => elements(props.children))
  const cells = rows.map(({ props }) => elements(props.children))
  return {
    type: 'table',
    align: (cells[0] ?? []).map(({ props }) => props.align ?? null),
    children: cells.map(row => ({
      type: 'tableRow',
      children: row.map(({ props }) => ({ type: 'tableCell', children: inlineOf(props.children, depth) })),
    })),
  }
}

function inlineOf(nodes: Element['props']['children'], depth: number): Inline[] {
  if (depth > DEEPEST) return [textNode(textOf(nodes))]
  return (nodes ?? []).flatMap(node => (typeof node === 'string' ? rawOf(node) : leafOf(node, depth + 1)))
}

/**
 * Converts raw HTML. Bun returns it as a separate text, whereas a `<` in ordinary text that looks like HTML is a text
 * by itself.
 */
function rawOf(text: string): Inline[] {
  if (LINE_BREAK.test(text)) return [{ type: 'break' }]
  return COMMENT.test(text) ? [] : [textNode(text)]
}

function leafOf({ type, props }: Element, depth: number): Inline[] {
  const { children, href = '', src = '', alt = '' } = props
  const mark = MARKS[type]
  if (mark) return emphasised(mark, inlineOf(children, depth))
  switch (type) {
    case 'code':
      return [{ type: 'inlineCode', value: textOf(children).replaceAll('\n', ' ') }]
    case 'br':
      return [{ type: 'break' }]
    case 'a': {
      const inside = inlineOf(children, depth)
      const url = target(href, textOf(children))
      return SCHEME.test(url) ? [link(url, inside)] : inside
    }
    case 'img': {
      const url = spelled(src)
      return SCHEME.test(url) ? [image(url, spelled(alt))] : [textNode(spelled(alt))]
    }
    default:
      return inlineOf(children, depth)
  }
}

/** The target of a link. A bare address such as `www.…` has no scheme, so one is added. */
function target(href: string, text: string): string {
  if (href !== text) return spelled(href)
  if (/^www\./i.test(href)) return `http://${href}`
  return /^[^\s:/?#@]+@[^\s:/?#@]+$/.test(href) ? `mailto:${href}` : spelled(href)
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** Resolves escapes and character references, which Bun leaves in attributes. */
function spelled(text: string): string {
  return text.replace(
    /\\([!-/:-@[-`{-~])|&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z]+));/gi,
    (all, mark, hex, digits, name) => {
      if (mark !== undefined) return mark
      if (name !== undefined) return ENTITIES[name] ?? all
      const code = hex === undefined ? Number(digits) : Number.parseInt(hex, 16)
      return code > 0 && code <= 0x10_ffff ? String.fromCodePoint(code) : '\ufffd'
    },
  )
}

const elements = (nodes: Element['props']['children']): Element[] =>
  (nodes ?? []).filter((node): node is Element => typeof node !== 'string')

const paragraphOf = (text: string): Block[] => (text ? [paragraph([textNode(text)])] : [])

/** The text of nodes and of everything inside them, without their marks. */
function textOf(nodes: Element['props']['children']): string {
  const found: string[] = []
  const open: Node[] = []
  const put = (all: Element['props']['children']) => {
    for (let at = (all?.length ?? 0) - 1; at >= 0; at--) open.push(all![at]!)
  }
  put(nodes)
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (typeof node === 'string') found.push(node)
    else put(node.props.children)
  }
  return found.join('')
}
