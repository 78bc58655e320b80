// Converts storage format to Markdown. A macro with a body is replaced by its body (a panel becomes a quote, code
// becomes a code block). Any other macro is replaced by what its parameters say: the pages, files, addresses and people
// that they name, and texts such as the key of a Jira issue. One that says nothing, such as a table of contents, is
// dropped.
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
  quote,
  table,
  textNode,
  unboxed,
} from '../markdown/markdown-tree.ts'
import { printMarkdown } from '../markdown/print-markdown.ts'

interface Element {
  name: string
  attributes: Record<string, string>
  children: (Element | string)[]
}
type Node = Element | string

/**
 * The page as Markdown. `names` has the display names of accounts; a mention of any other account has its id. What is
 * nested deeper than `DEEPEST` keeps its text, without its elements.
 */
export async function storageToMarkdown(
  storage: string,
  names: ReadonlyMap<string, string> = new Map(),
): Promise<string> {
  const { BoundedParser } = await import('../../schema/bounded-parser.ts')
  const root = made('')
  const open = [root]
  const parser = new BoundedParser(
    {
      onopentag(name, attributes) {
        const parent = open.at(-1)!
        if (open.length > DEEPEST) {
          open.push(SILENT.includes(name) ? made(name) : (open.findLast(each => !NO_TEXT.includes(each.name)) ?? root))
          return
        }
        const person = name === 'ri:user' ? names.get(attributes['ri:account-id'] ?? '') : undefined
        const element = made(name, person ? { ...attributes, [PERSON]: person } : attributes)
        parent.children.push(element)
        open.push(element)
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

const made = (name: string, attributes: Element['attributes'] = {}): Element => ({ name, attributes, children: [] })

/** Elements whose text is not for people. */
const SILENT = ['script', 'style', 'ac:placeholder', 'ac:parameter']
/** Elements that have no text of their own. What is nested too deeply in one becomes text of the element around it. */
const NO_TEXT = [
  ...['ul', 'ol', 'table', 'thead', 'tbody', 'tfoot', 'tr', 'ac:task-list', 'ac:task', 'ac:task-id', 'ac:task-status'],
  ...['ac:link', 'ac:image', 'ac:structured-macro', 'ac:adf-extension', 'ac:emoticon', 'br', 'hr', 'img', 'time'],
]
/** The attribute of a user into which the display name is put. */
const PERSON = 'display-name'
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
/** The parameters of macros without a body that are texts for people. */
const SAID: Record<string, readonly string[]> = {
  status: ['title'],
  jira: ['key', 'jqlQuery'],
  jirachart: ['jql'],
  contentbylabel: ['cql'],
  widget: ['url'],
  iframe: ['src'],
  drawio: ['diagramDisplayName', 'diagramName'],
  gliffy: ['displayName', 'name'],
}
/** Macros whose parameter without a name is the title of a page. */
const INCLUDES = ['include', 'excerpt-include']

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
      return items.length === 0 ? [] : [listOf(items)]
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

const listOf = (children: ListItem[]): Block => ({ type: 'list', ordered: false, spread: false, children })

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
      const nested = tasksOf(child.children)
      const above = items.at(-1)
      if (!above) items.push(...nested)
      else if (nested.length > 0) above.children.push(listOf(nested))
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

/** The blocks of a macro with a body; null for one without, which is inline content. */
function macroOf(name: string, children: readonly Node[]): Block[] | null {
  const title = parameter(children, 'title')
  const above = title ? [paragraph([{ type: 'strong', children: [textNode(title)] }])] : []
  const plain = elements(children, 'ac:plain-text-body')[0]
  if (plain) {
    const lang = parameter(children, 'language') || (['code', 'noformat'].includes(name) ? null : name)
    return [...above, { type: 'code', lang, value: textOf(plain.children) }]
  }
  const rich = elements(children, 'ac:rich-text-body')
  if (rich.length === 0) return null
  const body = blocksOf(rich.flatMap(each => each.children))
  if (body.length === 0) return []
  return PANELS.includes(name) ? [quote([...above, ...body])] : [...above, ...body]
}

/** What the parameters of a macro without a body say. */
function saidBy(name: string, children: readonly Node[]): Inline[] {
  const parameters = elements(children, 'ac:parameter')
  const named = parameters.flatMap(each =>
    each.children.flatMap(child => (typeof child === 'string' ? [] : namedBy(child))),
  )
  if (named.length > 0) return spaced(named)
  if (INCLUDES.includes(name)) {
    const title = parameter(children, '').trim()
    return title ? [pageLink(title, undefined)] : []
  }
  const text = (SAID[name] ?? []).map(each => parameter(children, each).trim()).find(Boolean)
  if (!text) return []
  if (/^https?:\/\/\S+$/.test(text)) return [link(text, [textNode(text)])]
  return name === 'status' || !/[=~]/.test(text) ? [textNode(text)] : [{ type: 'inlineCode', value: text }]
}

/** The page, file, address or person that an element in a parameter names. */
function namedBy(element: Element): Inline[] {
  if (!element.name.startsWith('ri:')) return leafOf(element)
  if (element.name !== 'ri:url') return linkOf({ name: 'ac:link', attributes: {}, children: [element] })
  const url = element.attributes['ri:value']
  return url ? [link(url, [textNode(url)])] : []
}

const spaced = (nodes: readonly Inline[]): Inline[] =>
  nodes.flatMap((node, at) => (at === 0 ? [node] : [textNode(' '), node]))

/** Cells that span columns fill a row up to this number of them. */
const MOST_COLUMNS = 100

/** A table. A cell that spans several columns is put into the first of them. */
function tableOf(children: readonly Node[]): Block[] {
  const rows = ['thead', 'tbody', 'tfoot']
    .flatMap(group => elements(children, group).flatMap(section => elements(section.children, 'tr')))
    .concat(elements(children, 'tr'))
  const cells = rows.map(
    row => row.children.filter(cell => typeof cell !== 'string' && /^t[hd]$/.test(cell.name)) as Element[],
  )
  const columns = cells.map(row => {
    const read: Block[][] = []
    for (const { attributes, children: content } of row) {
      read.push(blocksOf(content))
      const span = Math.min(numberOf(attributes.colspan), MOST_COLUMNS - read.length + 1)
      for (let column = 1; column < span; column++) read.push([])
    }
    return read
  })
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
      const block = blockOf(element)
      return block ? block.flatMap(flat) : saidBy(attributes['ac:name'] ?? '', children)
    }
    default: {
      if (SILENT.includes(name)) return []
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
  const user = target('ri:user')
  const account = user?.['ri:account-id']
  if (account) return [mention(account, user[PERSON] ?? account)]
  const rich = elements(children, 'ac:link-body').flatMap(body => inlineOf(body.children))
  const plain = textOf(elements(children, 'ac:plain-text-link-body'))
  const body = (standard: string) => (rich.length > 0 ? rich : [textNode(plain || standard)])
  const page = target('ri:page')
  const title = page?.['ri:content-title']
  if (title) return [pageLink(title, page['ri:space-key'], body(title))]
  const file = target('ri:attachment')?.['ri:filename']
  if (file) return [link(`attachment:${encodeURIComponent(file)}`, body(file))]
  const anchor = attributes['ac:anchor']
  if (anchor) return [link(`#${anchor}`, body(anchor))]
  return body(target('ri:blog-post')?.['ri:content-title'] ?? target('ri:space')?.['ri:space-key'] ?? '')
}

function pageLink(title: string, space: string | undefined, body: Inline[] = [textNode(title)]): Inline {
  const key = space ? `${encodeURIComponent(space)}/` : ''
  return link(`page:${key}${encodeURIComponent(title)}`, body)
}
