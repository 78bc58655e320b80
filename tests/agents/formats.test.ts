// Markdown to storage format and to ADF, and back: what people write arrives, and reading it gives the same text.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  type AdfNode,
  adfToMarkdown,
  markdownToAdf,
  markdownToStorage,
  storageToMarkdown,
} from '../../lib/vendors/vendors.ts'
import { adfProblems } from '../support/adf.ts'
import { anyDocuments, documents, words } from '../support/markdown.ts'

const throughStorage = async (markdown: string) => storageToMarkdown(await markdownToStorage(markdown))
const throughAdf = async (markdown: string) => adfToMarkdown(await markdownToAdf(markdown))

/** Texts as our own printer writes them: they come back to the letter. */
const SAME: Record<string, string> = {
  headings: '# One\n\n## Two *em*\n\n###### Six\n',
  emphasis: 'a **strong _both_** ~~gone~~ `a < b` text\n',
  'line breaks': 'one\\\ntwo\n',
  'nested lists': '- a\n  - b\n\n    more of b\n- c\n  1. x\n  2. y\n',
  'numbered from three': '3. three\n4. four\n',
  'numbered from zero': '0. zero\n1. one\n',
  tasks: '- [ ] to do\n- [x] done\n',
  'tasks in tasks, and beside what is none': '- [ ] one\n  - [x] nested\n- plain\n',
  quotes: '> one\n>\n> two\n',
  tables: '| a | b |\n| - | - |\n| **1** | x \\| y<br>z |\n| | `c` |\n',
  'a table without header': '| | |\n| - | - |\n| 1 | 2 |\n',
  code: '```ts\nif (a < b && c > d) x = "]]>"\n```\n',
  'code without language': '```\n\n  two\n\n```\n',
  links: '[text **bold**](https://a.example/b?c=1\\&d="2") <https://b.example>\n',
  images: '![alt "text"](https://a.example/i.png)\n',
  mentions: '[@557058:f58131cb](accountid:557058:f58131cb) please\n',
  rules: 'a\n\n---\n\nb\n',
  'what looks like Markdown': '1\\. not \\* a list, snake_case, # no heading, \\[x] \\<b>\n',
  unicode: '🎉 ünï — „quotes“ & < >\n',
}

describe.each(Object.entries(SAME))('%s', (_, markdown) => {
  test('through storage format', async () => expect(await throughStorage(markdown)).toBe(markdown))
  test('through ADF', async () => expect(await throughAdf(markdown)).toBe(markdown))
})

describe('any text', () => {
  const settings = { numRuns: 60, seed: 7 }
  test('in storage format is read so that it can be written again', () =>
    fc.assert(
      fc.asyncProperty(documents, async markdown => {
        const storage = await markdownToStorage(markdown)
        expect(await markdownToStorage(await storageToMarkdown(storage))).toBe(storage)
      }),
      settings,
    ))

  test('in ADF is read so that it can be written again', () =>
    fc.assert(
      fc.asyncProperty(documents, async markdown => {
        // Code takes no other marks there, so that emphasis around it is split the first time.
        const document = await markdownToAdf(markdown)
        const once = await markdownToAdf(await adfToMarkdown(document))
        expect(textOf(once)).toBe(textOf(document))
        expect(await markdownToAdf(await adfToMarkdown(once))).toEqual(once)
      }),
      settings,
    ))

  test('makes documents that Jira’s schema allows', () =>
    fc.assert(
      fc.asyncProperty(anyDocuments, async markdown => {
        expect(adfProblems(await markdownToAdf(markdown))).toEqual([])
      }),
      { numRuns: 500, seed: 7 },
    ))

  test.each<[string, AdfNode]>([
    ['a heading in an item', { type: 'bulletList', content: [{ type: 'listItem', content: [{ type: 'heading' }] }] }],
    ['an empty text', { type: 'paragraph', content: [{ type: 'text', text: '' }] }],
    ['a list without items', { type: 'bulletList', content: [] }],
    ['a quote in a quote', { type: 'blockquote', content: [{ type: 'blockquote', content: [] }] }],
    ['a task without a state', { type: 'taskList', attrs: { localId: 'a' }, content: [{ type: 'taskItem' }] }],
    ['an attribute of another node', { type: 'codeBlock', attrs: { lang: 'ts' }, content: [] }],
    [
      'bold code',
      { type: 'paragraph', content: [{ type: 'text', text: 'a', marks: [{ type: 'code' }, { type: 'strong' }] }] },
    ],
  ])('in which %s is refused', (_, node) => {
    expect(adfProblems({ type: 'doc', version: 1, content: [node] })).not.toEqual([])
  })
})

const textOf = ({ text = '', content = [] }: AdfNode): string => text + content.map(textOf).join('')

test('blocks where Jira has no place for them become what it has', async () => {
  const document = await markdownToAdf(
    '- # head\n\n  > quote\n\n  | a |\n  | - |\n  | b |\n- [x] with\n\n  more\n-\n\n> # head\n>\n> ---\n>\n> > deep\n\n> - x',
  )
  expect(adfProblems(document)).toEqual([])
  expect(await adfToMarkdown(document)).toBe(
    '- **head**\n\n  quote\n\n  a\n\n  b\n- [x] with\n\n  more\n-\n\n> **head**\n>\n> deep\n\n> - x\n',
  )
})

describe('writing', () => {
  test('raw HTML is text, comments vanish, a script link has no target', async () => {
    const markdown =
      'a <b>x</b> <!-- no --> [click](javascript:alert(1)) ![i](data:text/html,x)\n\n<div>\n\n<!-- no -->\n'
    expect(await markdownToStorage(markdown)).toBe('<p>a &lt;b&gt;x&lt;/b&gt;  click i</p><p>&lt;div&gt;</p>')
    expect(JSON.stringify(await markdownToAdf(markdown))).not.toContain('javascript')
  })

  test('references are resolved, a footnote stays as it was written', async () => {
    const markdown = '[a][r] ![b][r] c[^1]\n\n[r]: https://r.example "t"\n\n[^1]: a note\n'
    expect(await throughStorage(markdown)).toBe(
      '[a](https://r.example) ![b](https://r.example) c\\[^1]\n\n\\[^1]: a note\n',
    )
  })

  test('addresses are spelled out, escapes and references in them resolved', async () => {
    const markdown = '[a](/x\\_y?a=1&amp;b=&#50; "t") www.b.example a@b.example https://c.example/d_e.\n'
    expect(await markdownToStorage(markdown)).toBe(
      '<p><a href="/x_y?a=1&amp;b=2">a</a> <a href="http://www.b.example">www.b.example</a> ' +
        '<a href="mailto:a@b.example">a@b.example</a> <a href="https://c.example/d_e">https://c.example/d_e</a>.</p>',
    )
  })

  test('storage format escapes what XML does not allow', async () => {
    const markdown = 'a\u0000\u0007 & "q" \ud800\n\n```a"b\nx]]>y\n```\n'
    const storage = await markdownToStorage(markdown)
    expect(storage).not.toMatch(/[\x00-\x08]/)
    expect(storage).toContain('&amp; &quot;q&quot; \ufffd')
    expect(storage).toContain('ac:name="language">a&quot;b<')
    expect(storage).toContain('<![CDATA[x]]]]><![CDATA[>y]]>')
  })

  test('mentions, links to pages and attachments have forms of their own', async () => {
    const markdown =
      '[@Ada](accountid:5b1) [see](page:DOCS/A%2FB%20%26) [f](attachment:a%20b.pdf) ![i](img/c.png) [x](#y)\n'
    const storage = await markdownToStorage(markdown)
    expect(storage).toContain('<ac:link><ri:user ri:account-id="5b1" /></ac:link>')
    expect(storage).toContain('<ri:page ri:content-title="A/B &amp;" ri:space-key="DOCS" /><ac:link-body>see<')
    expect(storage).toContain('<ri:attachment ri:filename="a b.pdf" />')
    expect(storage).toContain('<ac:image ac:alt="i"><ri:attachment ri:filename="c.png" /></ac:image>')
    expect(await storageToMarkdown(storage)).toBe(
      '[@5b1](accountid:5b1) [see](page:DOCS/A%2FB%20%26) [f](attachment:a%20b.pdf) ![i](attachment:c.png) [x](#y)\n',
    )
    const [paragraph] = (await markdownToAdf('[@Ada](accountid:5b1)')).content!
    expect(paragraph!.content).toEqual([{ type: 'mention', attrs: { id: '5b1', text: '@Ada' } }])
    expect(await throughAdf('[@Ada](accountid:5b1)\n')).toBe('[@Ada](accountid:5b1)\n')
  })
})

describe('reading', () => {
  test('storage format of a real page', async () => {
    const storage = `<ac:layout><ac:layout-section><ac:layout-cell>
      <ac:structured-macro ac:name="toc" ac:schema-version="1"><ac:parameter ac:name="maxLevel">2</ac:parameter></ac:structured-macro>
      <h2>A&nbsp;title&rsquo;s <strong>end </strong>now</h2><p />
      <p>Text <ac:link><ri:page ri:content-title="Home" /></ac:link> and <ac:link ac:anchor="top"><ac:plain-text-link-body><![CDATA[up <>]]></ac:plain-text-link-body></ac:link>
        <time datetime="2026-01-02" /> <ac:emoticon ac:name="smile" ac:emoji-fallback="🙂" />
        <ac:structured-macro ac:name="status"><ac:parameter ac:name="title">DONE</ac:parameter></ac:structured-macro></p>
      <ac:structured-macro ac:name="info"><ac:parameter ac:name="title">Mind</ac:parameter><ac:rich-text-body><p>the gap</p></ac:rich-text-body></ac:structured-macro>
      <table class="x"><colgroup><col /></colgroup><tbody><tr><td colspan="2"><p>a</p><ul><li>b</li><li>c</li></ul></td></tr><tr><td>1</td><td>2</td></tr></tbody></table>
      <p><s>old</s><u>new</u><br /></p><pre>x
y</pre><ol><li>one<ol><li>two</li></ol></li></ol>
    </ac:layout-cell></ac:layout-section></ac:layout>`
    expect(await storageToMarkdown(storage)).toBe(`## A title’s **end** now

Text [Home](page:Home) and [up <>](#top) 2026-01-02 🙂 DONE

> **Mind**
>
> the gap

| | |
| - | - |
| a<br>• b<br>• c | |
| 1 | 2 |

~~old~~new

\`\`\`
x
y
\`\`\`

1. one
   1. two
`)
  })

  test('what is no document at all', async () => {
    expect(await storageToMarkdown('')).toBe('')
    expect(await storageToMarkdown('<p>open <strong>and <li>never</p> closed &bogus; </b>')).toContain('open')
    expect(await adfToMarkdown(null)).toBe('')
    expect(await adfToMarkdown({ type: 'doc', content: [{ type: 'unknown', content: [{ type: 'paragraph' }] }] })).toBe(
      '',
    )
  })

  test('ADF that Markdown has no words for becomes its text', async () => {
    const text = (value: string, ...marks: string[]) => ({
      type: 'text',
      text: value,
      marks: marks.map(type => ({ type })),
    })
    const document: AdfNode = {
      type: 'doc',
      content: [
        { type: 'panel', attrs: { panelType: 'info' }, content: [{ type: 'paragraph', content: [text('note')] }] },
        {
          type: 'paragraph',
          content: [
            text('a ', 'strong'),
            text('b', 'strong', 'em', 'underline'),
            text(' c', 'em'),
            { type: 'emoji', attrs: { shortName: ':x:', text: '✗' } },
            { type: 'status', attrs: { text: 'OPEN' } },
            { type: 'date', attrs: { timestamp: '1767312000000' } },
            { type: 'inlineCard', attrs: { url: 'https://c.example' } },
            { type: 'hardBreak' },
          ],
        },
        { type: 'expand', attrs: { title: 'More' }, content: [{ type: 'paragraph', content: [text('hidden')] }] },
        { type: 'mediaSingle', content: [{ type: 'media', attrs: { type: 'file', id: 'f-1', alt: 'shot' } }] },
        {
          type: 'taskList',
          content: [
            { type: 'taskItem', attrs: { state: 'DONE' }, content: [text('one')] },
            { type: 'taskList', content: [{ type: 'taskItem', attrs: { state: 'TODO' }, content: [text('two')] }] },
          ],
        },
      ],
    }
    expect(await adfToMarkdown(document)).toBe(
      '> note\n\n**a _b_** *c*✗OPEN2026-01-02<https://c.example>\n\n**More**\n\nhidden\n\n![shot](attachment:f-1)\n\n- [x] one\n  - [ ] two\n',
    )
  })
})

test('the sides of a table’s columns are kept in storage format', async () => {
  const markdown = '| a | b | c |\n| :- | :-: | -: |\n| 1 | 2 | 3 |\n'
  expect(await throughStorage(markdown)).toBe(markdown)
  const cells = '<tr><td style="text-align: right;">1</td><td>2</td></tr>'
  expect(await storageToMarkdown(`<table><tbody>${cells}</tbody></table>`)).toContain('| -: | - |')
})

test('a list of tasks beside tasks is nested in the one before it', async () => {
  const task = (text: string) =>
    `<ac:task><ac:task-id>1</ac:task-id><ac:task-status>complete</ac:task-status><ac:task-body>${text}</ac:task-body></ac:task>`
  const nested = `<ac:task-list>${task('one')}<ac:task-list>${task('two')}</ac:task-list></ac:task-list>`
  expect(await storageToMarkdown(nested)).toBe('- [x] one\n  - [x] two\n')
})

test('text in a block that nobody knows is not lost', async () => {
  const content = [
    { type: 'text', text: 'by ' },
    { type: 'emoji', attrs: { text: '🎉' } },
    { type: 'rule' },
    { type: 'text', text: 'end' },
  ]
  expect(await adfToMarkdown({ type: 'doc', content: [{ type: 'novel', content }] })).toBe('by 🎉\n\n---\n\nend\n')
})

describe('nesting without end', () => {
  const DEEP = 10_000
  const nested = (type: string, inner?: string): AdfNode => {
    let node: AdfNode = { type: 'text', text: 'core' }
    for (let n = 0; n < DEEP; n++) node = { type, content: [inner ? { type: inner, content: [node] } : node] }
    return { type: 'doc', content: [node] }
  }

  test.each([
    ['quotes', '> '.repeat(DEEP)],
    ['lists on one line', '- '.repeat(DEEP)],
    ['lists', Array.from({ length: 2_000 }, (_, at) => `${'  '.repeat(at)}- x\n`).join('')],
    ['emphasis', '*a **b '.repeat(DEEP)],
    ['brackets', `${'['.repeat(DEEP)} `],
    ['addresses', '[a]('.repeat(DEEP)],
  ])('of %s in Markdown keeps its text', async (_, markdown) => {
    expect(await markdownToStorage(`${markdown}core`)).toContain('core')
    const document = await markdownToAdf(`${markdown}core`)
    expect(textOf(document)).toContain('core')
    expect(adfProblems(document)).toEqual([])
  })

  test.each(['div', 'blockquote', 'strong', 'ul><li', 'table><tbody><tr><td'])(
    'of %s in storage format keeps its text',
    async tags => expect(await storageToMarkdown(`${`<${tags}>`.repeat(DEEP)}core`)).toContain('core'),
  )

  test.each([
    ['blockquote', undefined],
    ['bulletList', 'listItem'],
    ['novel', undefined],
  ])('of %s in ADF keeps its text', async (type, inner) =>
    expect(await adfToMarkdown(nested(type, inner))).toContain('core'),
  )
})

test('scripts of a page are no text', async () => {
  const storage = '<p>a</p><script>alert("<b>")</script><style>p { color: red }</style><p>b</p>'
  expect(await storageToMarkdown(storage)).toBe('a\n\nb\n')
})

test('a document that is printed in slices is one', async () => {
  const markdown = Array.from({ length: 900 }, (_, at) => `## ${at}\n\n- a\n\n1. b\n`).join('\n')
  expect(await throughStorage(markdown)).toBe(markdown)
})

describe('whatever a vendor sends', () => {
  const types = [
    ...['paragraph', 'heading', 'text', 'bulletList', 'listItem', 'taskList', 'taskItem', 'table', 'tableRow', 'panel'],
    ...['tableCell', 'codeBlock', 'mention', 'emoji', 'date', 'status', 'media', 'mediaSingle', 'expand', 'inlineCard'],
    ...['hardBreak', 'orderedList', 'novel'],
  ]
  const marks = fc.array(
    fc.record({
      type: fc.constantFrom('strong', 'em', 'code', 'link', 'underline'),
      attrs: fc.constant({ href: 'x' }),
    }),
    { maxLength: 3 },
  )
  const { node } = fc.letrec<{ node: AdfNode }>(tie => ({
    node: fc.record(
      {
        type: fc.constantFrom(...types),
        text: words,
        attrs: fc.dictionary(fc.constantFrom('level', 'order', 'url', 'id', 'timestamp', 'language'), words, {
          maxKeys: 2,
        }),
        marks,
        content: fc.array(tie('node'), { maxLength: 4, depthIdentifier: 'adf' }),
      },
      { requiredKeys: ['type'] },
    ) as fc.Arbitrary<AdfNode>,
  }))

  test('as ADF is read, and is Markdown that can be written', () =>
    fc.assert(
      fc.asyncProperty(fc.array(node, { maxLength: 4 }), async content => {
        const document = await markdownToAdf(await adfToMarkdown({ type: 'doc', content }))
        expect(adfProblems(document)).toEqual([])
      }),
      { numRuns: 200, seed: 11 },
    ))

  const tags =
    'p ul ol li table tbody tr td th strong em code pre ac:link ac:task-list ac:task ac:task-body ri:page ac:image'
  const piece = fc.oneof(
    words,
    fc.constantFrom(...tags.split(' ')).map(tag => `<${tag}>`),
    fc.constantFrom(...tags.split(' ')).map(tag => `</${tag}>`),
  )
  test('as storage format is read, and is Markdown that can be written', () =>
    fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 30 }), async pieces => {
        const storage = await markdownToStorage(await storageToMarkdown(pieces.join('')))
        expect(await markdownToStorage(await storageToMarkdown(storage))).toBe(storage)
      }),
      { numRuns: 200, seed: 11 },
    ))
})

describe('what the macros of a page say', () => {
  const macro = (name: string, inside: string) =>
    `<ac:structured-macro ac:name="${name}">${inside}</ac:structured-macro>`
  const parameter = (name: string, value: string) => `<ac:parameter ac:name="${name}">${value}</ac:parameter>`
  const page = '<ac:link><ri:page ri:space-key="DOCS" ri:content-title="A &amp; B" /></ac:link>'
  const rich = '<ac:rich-text-body><p>text</p></ac:rich-text-body>'

  test.each([
    ['a Jira issue', macro('jira', parameter('server', 'Jira') + parameter('key', 'WEB-12')), 'WEB-12'],
    [
      'a list of Jira issues',
      macro('jira', parameter('columns', 'key,summary') + parameter('jqlQuery', 'project = WEB')),
      '`project = WEB`',
    ],
    ['an included page', macro('include', parameter('', page)), '[A & B](page:DOCS/A%20%26%20B)'],
    ['an included page of old', macro('include', parameter('', 'Home')), '[Home](page:Home)'],
    ['an excerpt', macro('excerpt-include', parameter('', page)), '[A & B](page:DOCS/A%20%26%20B)'],
    [
      'a file',
      macro('view-file', parameter('name', '<ri:attachment ri:filename="plan b.pdf" />')),
      '[plan b.pdf](attachment:plan%20b.pdf)',
    ],
    ['a person', macro('profile', parameter('user', '<ri:user ri:account-id="5b1" />')), '[@Ada](accountid:5b1)'],
    [
      'an address',
      macro('widget', parameter('url', '<ri:url ri:value="https://a.example/v" />')),
      '<https://a.example/v>',
    ],
    ['an address as text', macro('iframe', parameter('src', 'https://a.example/v')), '<https://a.example/v>'],
    ['a diagram', macro('drawio', parameter('diagramName', 'net') + parameter('width', '400')), 'net'],
    ['a status', macro('status', parameter('title', 'DONE') + parameter('colour', 'Green')), 'DONE'],
    ['a panel', macro('warning', parameter('title', 'Mind') + rich), '> **Mind**\n>\n> text'],
    ['a fold', macro('expand', parameter('title', 'More') + rich), '**More**\n\ntext'],
    [
      'code with a title',
      macro(
        'code',
        `${parameter('title', 'a.ts') + parameter('language', 'ts')}<ac:plain-text-body><![CDATA[let a]]></ac:plain-text-body>`,
      ),
      '**a.ts**\n\n```ts\nlet a\n```',
    ],
    [
      'a diagram as text',
      macro('mermaid', '<ac:plain-text-body><![CDATA[a --> b]]></ac:plain-text-body>'),
      '```mermaid\na --> b\n```',
    ],
    ['nothing', macro('toc', parameter('maxLevel', '2')), ''],
    ['nothing, in an anchor', macro('anchor', parameter('', 'cadre-key')), ''],
    [
      'an unknown one about a page',
      macro('novel', parameter('page', '<ri:page ri:content-title="Home" />')),
      '[Home](page:Home)',
    ],
    ['a blog post', '<ac:link><ri:blog-post ri:content-title="News" /></ac:link>', 'News'],
  ])('%s', async (_, storage, markdown) => {
    const names = new Map([['5b1', 'Ada']])
    expect(await storageToMarkdown(storage, names)).toBe(markdown && `${markdown}\n`)
    expect(await storageToMarkdown(`<p>see ${storage}!</p>`, names)).toContain('see')
  })
})
