// The Atlassian Document Format as its documentation and its JSON schema describe it, as far as Markdown leads there:
// which nodes may stand where, with which attributes and marks. It knows nothing of our writer.
// https://developer.atlassian.com/cloud/jira/platform/apis/document/structure/
// https://developer.atlassian.com/platform/framework/adf-builder/reference/nodes/

import { problems } from '../../lib/schema/schema.ts'
import { Type } from '../../lib/schema/type.ts'

interface Rule {
  /** Names of nodes and groups that may be children; without it the node has no content at all. */
  content?: string
  /** What the first child must be, where it has fewer choices. */
  first?: string
  least?: number
  most?: number
  /** The marks of the node itself; none without it. */
  marks?: string
  attrs?: Parameters<typeof problems>[0]
}

const text = Type.String()
const filled = Type.String({ minLength: 1 })
const closed = (required: Record<string, typeof text>, optional: Record<string, typeof text> = {}) =>
  Type.Object(
    {
      ...required,
      ...Object.fromEntries(Object.entries(optional).map(([name, schema]) => [name, Type.Optional(schema)])),
    },
    { additionalProperties: false },
  )
const integer = (minimum: number, maximum?: number) =>
  Type.Integer({ minimum, ...(maximum !== undefined && { maximum }) }) as unknown as typeof text
const choice = (...values: string[]) => Type.Enum(values) as unknown as typeof text

const GROUPS: Record<string, string> = {
  inline: 'text hardBreak mention emoji date status inlineCard mediaInline',
  lists: 'bulletList orderedList',
}

const NODES: Record<string, Rule> = {
  doc: {
    content:
      'paragraph heading lists taskList decisionList codeBlock blockquote panel rule table mediaSingle mediaGroup expand',
  },
  paragraph: { content: 'inline', attrs: closed({}, { localId: text }) },
  heading: { content: 'inline', attrs: closed({ level: integer(1, 6) }, { localId: text }) },
  codeBlock: { content: 'text', attrs: closed({}, { language: text, uniqueId: text, localId: text }) },
  blockquote: {
    content: 'paragraph lists codeBlock mediaSingle mediaGroup',
    least: 1,
    attrs: closed({}, { localId: text }),
  },
  bulletList: { content: 'listItem', least: 1, attrs: closed({}, { localId: text }) },
  orderedList: { content: 'listItem', least: 1, attrs: closed({}, { order: integer(0), localId: text }) },
  listItem: {
    content: 'paragraph lists taskList codeBlock mediaSingle',
    // The documentation says so; the schema takes a nested list too.
    first: 'paragraph codeBlock mediaSingle',
    least: 1,
    attrs: closed({}, { localId: text }),
  },
  taskList: { content: 'taskItem taskList', first: 'taskItem', least: 1, attrs: closed({ localId: text }) },
  taskItem: { content: 'inline', attrs: closed({ localId: text, state: choice('TODO', 'DONE') }) },
  table: { content: 'tableRow', least: 1 },
  tableRow: { content: 'tableCell tableHeader', least: 1 },
  tableCell: {
    content: 'paragraph heading lists taskList codeBlock blockquote panel rule mediaSingle mediaGroup',
    least: 1,
  },
  tableHeader: {
    content: 'paragraph heading lists taskList codeBlock blockquote panel rule mediaSingle mediaGroup',
    least: 1,
  },
  rule: { attrs: closed({}, { localId: text }) },
  mediaSingle: {
    content: 'media caption',
    first: 'media',
    least: 1,
    most: 2,
    attrs: closed({
      layout: choice('wide', 'full-width', 'center', 'wrap-right', 'wrap-left', 'align-end', 'align-start'),
    }),
  },
  media: { marks: 'link border', attrs: closed({ type: choice('external'), url: text }, { alt: text }) },
  hardBreak: { attrs: closed({}, { text: choice('\n'), localId: text }) },
  mention: { attrs: closed({ id: text }, { text, accessLevel: text, localId: text }) },
  text: { marks: 'link em strong strike underline subsup textColor backgroundColor code' },
}

const MARKS: Record<string, Rule['attrs']> = { link: closed({ href: text }, { title: text }) }
/** The marks that may stand beside `code`. */
const WITH_CODE = ['code', 'link']

interface Node {
  type: string
  content?: Node[]
  marks?: { type: string; attrs?: unknown }[]
  text?: string
  attrs?: unknown
  version?: number
}

/** What a document has that Jira would refuse. */
export function adfProblems(node: Node, at = node.type): string[] {
  const rule = NODES[node.type]
  if (!rule) return [`${at}: there is no such node`]
  return [...ownProblems(node, rule), ...contentProblems(node, rule)]
    .map(problem => `${at}: ${problem}`)
    .concat((node.content ?? []).flatMap(child => adfProblems(child, `${at} > ${child.type}`)))
}

function ownProblems(node: Node, { attrs, marks = '' }: Rule): string[] {
  const fields = ['type', ...(attrs ? ['attrs'] : []), ...(marks ? ['marks'] : [])]
  if (node.type === 'text') fields.push('text')
  else if (NODES[node.type]!.content !== undefined) fields.push('content')
  if (node.type === 'doc') fields.push('version')
  const wrong = Object.keys(node)
    .filter(field => !fields.includes(field))
    .map(field => `has ${field}`)
  if (attrs) wrong.push(...attributeProblems(node.attrs ?? {}, attrs))
  if (node.type === 'text' && problems(filled, node.text).length > 0) wrong.push('is an empty text')
  if (node.type === 'doc' && node.version !== 1) wrong.push('is not of version 1')
  const types = (node.marks ?? []).map(({ type }) => type)
  if (new Set(types).size < types.length) wrong.push('has a mark twice')
  if (types.includes('code') && types.some(type => !WITH_CODE.includes(type))) wrong.push('has marks on code')
  for (const mark of node.marks ?? []) {
    if (!marks.split(' ').includes(mark.type)) wrong.push(`has the mark ${mark.type}`)
    const known = MARKS[mark.type]
    if (known) wrong.push(...attributeProblems(mark.attrs ?? {}, known))
    else if (mark.attrs !== undefined) wrong.push(`has attributes of the mark ${mark.type}`)
  }
  return wrong
}

function attributeProblems(attrs: unknown, schema: NonNullable<Rule['attrs']>): string[] {
  return problems(schema, attrs).map(({ path, message }) => `attribute ${path} ${message}`)
}

function contentProblems(
  { type, content = [] }: Node,
  { content: allowed = '', first = allowed, least = 0, most }: Rule,
) {
  const names = (list: string) => list.split(' ').flatMap(name => GROUPS[name]?.split(' ') ?? [name])
  const wrong = content.filter(child => !names(allowed).includes(child.type)).map(child => `contains ${child.type}`)
  if (content[0] && !names(first).includes(content[0].type)) wrong.push(`begins with ${content[0].type}`)
  if (content.length < least || content.length > (most ?? content.length)) wrong.push(`has ${content.length} children`)
  if (type === 'codeBlock' && content.some(({ marks }) => marks)) wrong.push('contains text with marks')
  return wrong
}
