// Converts storage format to Markdown. A macro with a body is replaced by its body (a panel becomes a quote, code
// becomes a code block); any other macro is dropped.
// https://confluence.atlassian.com/doc/confluence-storage-format-790796544.html

import type { AlignType, ListItem } from 'mdast'
import {
  type Block,
  blocksWith,
  DEEPEST,
  emphasised,
  flat,
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

interface Element {
  name: string
  attributes: Record<string, string>
  children: (Element | string)[]
}
type Node = Element | string

export async function storageToMarkdown(storage: string): Promise<string> {
  const { Parser } = await import('htmlparser2')
  const root: Element = { name: '', attributes: {}, children: [] }
  const open = [root]
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        const element = { name, attributes, children: [] }
        const parent = open.at(-1)!
        const isTooDeep = open.length > DEEPEST
        if (!isTooDeep) parent.children.push(element)
        open.push(isTooDeep ? parent : element)
      },
      ontext: text => open.at(-1)!.children.push(text),
      onclosetag: () => void open.pop(),
    },
    // Parsed as HTML instead of XML, because pages contain the named entities of HTML.
    { recognizeCDATA: true, recognizeSelfClosing: true },
  )
  parser.end(storage)
  return printMarkdown(blocksOf(root.children))
}

const HEADING = /^h([1-6])$/
const PANELS = ['info', 'note', 'tip', 'warning', 'panel']
const CONTAINERS = [
  'div',
  'section',
  'article',
  'ac:layout',
  'ac:layout-section',
  'ac:layout-cell',
  'ac:rich-text-body',
]
const INLINE_MACROS = ['status', 'anchor']

const elements = (nodes: readonly Node[], name: string): Element[] =>
  nodes.filter((node): node is Element => typeof node !== 'string' && node.name === name)

const textOf = (nodes: readonly Node[]): string =>
  nodes.map(node => (typeof node === 'string' ? node : textOf(node.children))).join('')

function blocksOf(nodes: readonly Node[]): Block[] {
  return blocksWith(nodes, node => (typeof node === 'string' ? null : blockOf(node)), inlineOf)
}

/** The blocks of an element; null for inline content. */
function blockOf({ name, attributes, children }: Element): Block[] | null {
  const depth = HEADING.exec(name)?.[1]
  if (depth) return [heading(Number(depth), inlineOf(children))]
  if (CONTAINERS.includes(name)) return blocksOf(children)
  switch (name) {
    case 'p':
      return blocksOf(children)
    case 'ul':
    case 'ol': {
      const start = name === 'ol' ? numberOf(attributes.start) : null
      const items = elements(children, 'li').map(each => unboxed(blocksOf(each.children)))
      return items.length === 0 ? [] : [{ type: 'list', ordered: name === 'ol', start, spread: false, children: items }]
    }
    case 'ac:task-list': {
      const items = tasksOf(children)
      return items.length === 0 ? [] : [{ type: 'list', ordered: false, spread: false, children: items }]
    }
    case 'table':
      return tableOf(children)
    case 'blockquote':
      return [quote(blocksOf(children))]
    case 'pre':
      return [{ type: 'code', value: textOf(children).replace(/\n$/, '') }]
    case 'hr':
      return [{ type: 'thematicBreak' }]
    case 'ac:structured-macro':
      return macroOf(attributes['ac:name'] ?? '', children)
    case 'ac:adf-extension':
      return blocksOf(elements(children, 'ac:adf-fallback').flatMap(fallback => fallback.children))
    default:
      return null
  }
}

/** A nested task list is a sibling of the tasks. It belongs to the task before it. */
function tasksOf(children: readonly Node[]): ListItem[] {
  const items: ListItem[] = []
  for (const child of children) {
    if (typeof child === 'string') continue
    if (child.name === 'ac:task') {
      const done = textOf(elements(child.children, 'ac:task-status')).trim() === 'complete'
      const body = elements(child.children, 'ac:task-body').flatMap(each => each.children)
      items.push(item(blocksOf(body), done))
    } else if (child.name === 'ac:task-list') {
      const nested = blockOf(child) ?? []
      if (items.length === 0) items.push(...tasksOf(child.children))
      else items.at(-1)!.children.push(...nested)
    }
  }
  return items
}

function numberOf(text = '1', standard = 1): number {
  const number = Number.parseInt(text, 10)
  return Number.isNaN(number) || number < 0 ? standard : number
}

function parameter(children: readonly Node[], name: string): string {
  const found = elements(children, 'ac:parameter').find(({ attributes }) => attributes['ac:name'] === name)
  return found ? textOf(found.children) : ''
}

function macroOf(name: string, children: readonly Node[]): Block[] | null {
  if (INLINE_MACROS.includes(name)) return null
  const plain = elements(children, 'ac:plain-text-body')[0]
  if (plain) return [{ type: 'code', lang: parameter(children, 'language') || null, value: textOf(plain.children) }]
  const body = blocksOf(elements(children, 'ac:rich-text-body').flatMap(rich => rich.children))
  const title = parameter(children, 'title')
  const titled: Block[] =
    title && body.length > 0 ? [paragraph([{ type: 'strong', children: [textNode(title)] }]), ...body] : body
  return PANELS.includes(name) && titled.length > 0 ? [quote(titled)] : titled
}

/** A table. A cell that spans several columns is put into the first of them. */
function tableOf(children: readonly Node[]): Block[] {
  const rows = ['thead', 'tbody', 'tfoot']
    .flatMap(group => elements(children, group).flatMap(section => elements(section.children, 'tr')))
    .concat(elements(children, 'tr'))
  const cells = rows.map(
    row => row.children.filter(cell => typeof cell !== 'string' && /^t[hd]$/.test(cell.name)) as Element[],
  )
  const columns = cells.map(row =>
    row.flatMap(({ attributes, children: content }) => {
      const span = Math.min(Math.max(numberOf(attributes.colspan), 1), 100)
      return [blocksOf(content), ...Array.from({ length: span - 1 }, (): Block[] => [])]
    }),
  )
  return table(columns, cells[0]?.every(({ name }) => name === 'th') ?? false, cells[0]?.map(alignOf))
}

function alignOf(cell: Element): AlignType {
  const styles = [cell, ...elements(cell.children, 'p')].map(({ attributes }) => attributes.style ?? '')
  return (/text-align:\s*(left|center|right)/.exec(styles.join(';'))?.[1] as AlignType | undefined) ?? null
}

function inlineOf(nodes: readonly Node[]): Inline[] {
  return nodes.flatMap((node): Inline[] => {
    if (typeof node !== 'string') return leafOf(node)
    const value = node.replace(/\s+/g, ' ')
    return value ? [textNode(value)] : []
  })
}

function leafOf(element: Element): Inline[] {
  const { name, attributes, children } = element
  switch (name) {
    case 'strong':
    case 'b':
      return emphasised('strong', inlineOf(children))
    case 'em':
    case 'i':
      return emphasised('emphasis', inlineOf(children))
    case 'del':
    case 's':
      return emphasised('delete', inlineOf(children))
    case 'span': {
      const inner = inlineOf(children)
      return /line-through/.test(attributes.style ?? '') ? emphasised('delete', inner) : inner
    }
    case 'code':
      return textOf(children) ? [{ type: 'inlineCode', value: textOf(children) }] : []
    case 'a':
      return attributes.href ? [link(attributes.href, inlineOf(children))] : inlineOf(children)
    case 'br':
      return [{ type: 'break' }]
    case 'img':
      return attributes.src ? [image(attributes.src, attributes.alt ?? '')] : []
    case 'time':
      return attributes.datetime ? [textNode(attributes.datetime)] : []
    case 'ac:image':
      return imageOf(element)
    case 'ac:link':
      return linkOf(element)
    case 'ac:emoticon':
      return [
        textNode(attributes['ac:emoji-fallback'] || attributes['ac:emoji-shortname'] || `(${attributes['ac:name']})`),
      ]
    case 'ac:structured-macro': {
      const title = attributes['ac:name'] === 'status' ? parameter(children, 'title') : ''
      return title ? [textNode(title)] : []
    }
    case 'script':
    case 'style':
    case 'ac:placeholder':
    case 'ac:parameter':
      return []
    default: {
      const block = blockOf(element)
      return block ? block.flatMap(flat) : inlineOf(children)
    }
  }
}

function imageOf({ attributes, children }: Element): Inline[] {
  const alt = attributes['ac:alt'] ?? ''
  const url = elements(children, 'ri:url')[0]?.attributes['ri:value']
  if (url) return [image(url, alt)]
  const name = elements(children, 'ri:attachment')[0]?.attributes['ri:filename']
  return name ? [image(`attachment:${encodeURIComponent(name)}`, alt)] : []
}

function linkOf({ attributes, children }: Element): Inline[] {
  const target = (name: string) => elements(children, name)[0]?.attributes
  const user = target('ri:user')?.['ri:account-id']
  if (user) return [mention(user, user)]
  const rich = elements(children, 'ac:link-body').flatMap(body => inlineOf(body.children))
  const plain = textOf(elements(children, 'ac:plain-text-link-body'))
  const body = (standard: string) => (rich.length > 0 ? rich : [textNode(plain || standard)])
  const page = target('ri:page')
  const title = page?.['ri:content-title']
  if (page && title) {
    const space = page['ri:space-key']
    const key = space ? `${encodeURIComponent(space)}/` : ''
    return [link(`page:${key}${encodeURIComponent(title)}`, body(title))]
  }
  const file = target('ri:attachment')?.['ri:filename']
  if (file) return [link(`attachment:${encodeURIComponent(file)}`, body(file))]
  const anchor = attributes['ac:anchor']
  return anchor ? [link(`#${anchor}`, body(anchor))] : body('')
}
