// Markdown and vendors' documents are converted in a time that grows with their length, however they are nested, and what
// is nested too deeply keeps its text.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { oneLine } from '../../lib/text/one-line.ts'
import { parseMarkdown } from '../../lib/vendors/markdown/parse-markdown.ts'
import { printMarkdown } from '../../lib/vendors/markdown/print-markdown.ts'
import { markdownToChat, markdownToHtml } from '../../lib/vendors/markdown/render-markdown.ts'
import { parseXml } from '../../lib/vendors/s3/xml.ts'
import {
  type AdfNode,
  adfToMarkdown,
  confluence,
  markdownToAdf,
  markdownToStorage,
  storageToMarkdown,
} from '../../lib/vendors/vendors.ts'
import { adfProblems } from '../support/adf.ts'
import { hostileJson, hostileTexts } from '../support/hostile.ts'
import { anyDocuments } from '../support/markdown.ts'
import { randomFrom, seedOf } from '../support/random.ts'

const random = randomFrom(seedOf('markdown'))
const plain = { text: (text: string) => text, strong: '*', emphasis: '_', strikethrough: '~', code: '`', block: '```' }

const WRITERS: Record<string, (markdown: string) => unknown> = {
  HTML: markdownToHtml,
  chat: markdown => markdownToChat(markdown, plain),
  'storage format': markdownToStorage,
  ADF: markdownToAdf,
}

/** A text of about `length` characters. */
type Make<T = string> = (length: number) => T
const filled =
  (unit: string): Make =>
  length =>
    unit.repeat(Math.ceil(length / unit.length))

const MARKDOWN: Record<string, Make> = {
  quotes: filled('> '),
  'quotes without blanks': filled('>'),
  lists: filled('- '),
  'numbered lists': filled('1. '),
  'lists in quotes': filled('- > '),
  'many deep lists': filled(`${'- '.repeat(99)}a\n\n`),
  'a paragraph that goes on in quotes': length => `${'> '.repeat(length / 4)}\n${'a\n'.repeat(length / 4)}`,
  'a quote that ends': length => `${'> '.repeat(length / 4)}a\n${'> a\n'.repeat(length / 8)}`,
  'lists by indentation': length =>
    Array.from({ length: Math.sqrt(length) }, (_, at) => `${'  '.repeat(at)}- x\n`).join(''),
  brackets: filled('['),
  'brackets that end': length => '['.repeat(length / 2) + ']'.repeat(length / 2),
  images: filled('!['),
  'links that do not end': filled('[a]('),
  'links in links': length => `${'['.repeat(length / 5)}a${'](b)'.repeat(length / 5)}`,
  stars: filled('*'),
  'emphasis that does not end': filled('*a **b '),
  'emphasis in emphasis': length => '**a '.repeat(length / 8) + ' a**'.repeat(length / 8),
  underscores: filled('_'),
  backticks: filled('`'),
  'runs of backticks': length =>
    Array.from({ length: Math.sqrt(2 * length) }, (_, at) => `${'`'.repeat(at)} `).join(''),
  'what looks like HTML': filled('<a '),
  comments: filled('<!--'),
  ampersands: filled('&'),
  'a wide table': length => `|${'a|'.repeat(length / 8)}\n|${'-|'.repeat(length / 8)}\n${'|\n'.repeat(length / 4)}`,
  definitions: length => Array.from({ length: length / 12 }, (_, at) => `[r${at}]: /u${at}\n`).join(''),
  'uses of a long definition': length => `[r]: ${'/u'.repeat(length / 4)}\n\n${'[r] '.repeat(length / 8)}`,
}

const STORAGE: Record<string, Make> = {
  ...Object.fromEntries(
    [
      ...['div', 'blockquote', 'strong', 'ul><li', 'ol', 'table><tbody><tr><td', 'span><div', 'p><b', 'a href="x"'],
      ...['ac:task-list', 'ac:task-list><ac:task><ac:task-body', 'ac:link><ac:link-body', 'code', 'em>a<strong>b<s'],
      ...['ac:structured-macro ac:name="x"><ac:rich-text-body', 'em>a<strong'],
    ].map(tags => [`<${tags}>`, filled(`<${tags}>a`)]),
  ),
  'task lists': length => `${'<ac:task-list>'.repeat(length / 14)}a`,
  'marks side by side': filled('<em>a</em><strong>b</strong>'),
  'marks at punctuation': filled('a<em>(a)</em><strong>_b</strong>'),
  'cells that span': length => `<table><tr>${'<td colspan="100">'.repeat(length / 18)}`,
  'lines in quotes': length => '<blockquote>'.repeat(100) + '<br/>a'.repeat(length / 6),
  breaks: filled('<br/>'),
  'backslashes before a mark': length => `${'\\'.repeat(length)}ab<em>(c)</em>`,
  brackets: filled('['),
  backticks: length =>
    `<code>${Array.from({ length: Math.sqrt(2 * length) }, (_, at) => '`'.repeat(at)).join(' ')}</code>`,
  'ends of few': length => '<b>'.repeat(length / 6) + '</i></b>'.repeat(length / 16),
  'ends of nothing': length => '<b>'.repeat(length / 6) + '</i>'.repeat(length / 8),
}

const text = (value: string, ...marks: string[]): AdfNode => ({
  type: 'text',
  text: value,
  marks: marks.map(type => ({ type })),
})
const doc = (...content: AdfNode[]): AdfNode => ({ type: 'doc', content })
const nested = (levels: number, around: (inner: AdfNode) => AdfNode): AdfNode => {
  let node = text('core')
  for (let level = 0; level < levels; level++) node = around(node)
  return doc(node)
}
const inside =
  (...types: string[]) =>
  (inner: AdfNode): AdfNode =>
    types.reduceRight((content, type) => ({ type, content: [content] }), inner)
const SHELLS: string[][] = [
  ...[['blockquote'], ['bulletList', 'listItem'], ['taskList'], ['taskList', 'taskItem'], ['novel'], ['codeBlock']],
  ...[['table', 'tableRow', 'tableCell'], ['expand'], ['paragraph'], ['heading'], ['mediaSingle'], ['orderedList']],
]

const ADF: Record<string, Make<AdfNode>> = {
  ...Object.fromEntries(
    SHELLS.map(types => [types.join(', '), (length: number) => nested(length / 40, inside(...types))]),
  ),
  'marks side by side': length =>
    doc({
      type: 'paragraph',
      content: Array.from({ length: length / 60 }, (_, at) => (at % 2 ? text('a', 'strong') : text('(', 'em'))),
    }),
  'many marks of one text': length =>
    doc({
      ...text('a'),
      marks: Array.from({ length: length / 20 }, (_, at) => ({ type: 'link', attrs: { href: `${at}` } })),
    }),
  breaks: length =>
    doc({ type: 'paragraph', content: Array.from({ length: length / 20 }, () => ({ type: 'hardBreak' })) }),
  rules: length => doc(...Array.from({ length: length / 20 }, () => ({ type: 'rule' }))),
}

const UNIT = 16_384
/** Milliseconds of processor time that are too few to be compared. */
const NOISE = 100

async function costOf(work: () => unknown): Promise<number> {
  const began = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(began)
  return (user + system) / 1_000
}

/** Four times the length must not take more than ten times as long; it takes sixteen times in quadratic time. */
async function expectLinear<T>(make: Make<T>, convert: (input: T) => unknown): Promise<void> {
  const [little, much] = [make(UNIT), make(4 * UNIT)]
  await convert(little)
  const little_ms = Math.min(await costOf(() => convert(little)), await costOf(() => convert(little)))
  const much_ms = Math.min(await costOf(() => convert(much)), await costOf(() => convert(much)))
  expect(much_ms).toBeLessThan(10 * little_ms + NOISE)
}

describe.each(Object.entries(MARKDOWN))('%s', (_, make) => {
  test.each(Object.entries(WRITERS))('become %s in linear time', (_, write) => expectLinear(make, write))
})

describe('what a vendor sends is read in linear time', () => {
  test.each(Object.entries(STORAGE))('storage format: %s', (_, make) => expectLinear(make, s => storageToMarkdown(s)))
  test.each(Object.entries(ADF))('ADF: %s', (_, make) => expectLinear(make, adfToMarkdown))
})

test.each(
  Object.entries({
    elements: filled('<a>'),
    'elements without ends': (length: number) => '<a>'.repeat(length / 6) + '</b>'.repeat(length / 8),
    texts: filled('<a>x&amp;</a>y'),
  }),
)('XML of a store is read in linear time: %s', (_, make) => expectLinear(length => make(8 * length), parseXml))

test.each(Object.entries({ blanks: filled(' '), lines: filled(' \n ') }))(
  'what a program says is put on one line in linear time: %s',
  (_, make) => expectLinear(length => `a${make(length)}b`, oneLine),
)

test('the people whom a page mentions are found in linear time', async () => {
  const context = {} as Parameters<typeof confluence.namesIn>[1]
  await expectLinear(filled('<ri:user '), storage => confluence.namesIn(storage, context))
})

test('a chat is told each character once, and each line of a quote is marked once', () => {
  let told = 0
  const counting = {
    ...plain,
    text(part: string) {
      told += part.length
      return part
    },
  }
  const levels = 200
  const lines = 5_000
  const written = markdownToChat(`${'> '.repeat(levels)}${'a\n'.repeat(lines)}`, counting)
  expect(told).toBeLessThan(3 * lines)
  expect(written.length).toBeLessThan(lines * 2 * levels)
})

describe('what is nested too deeply keeps its text', () => {
  const SHIFTS = Array.from({ length: 7 }, (_, shift) => shift)

  test.each(Object.keys(WRITERS))('as %s', async name => {
    for (const mark of ['> ', '- ', '1. ', '- > ', '*a **b ', '[', '![', '> - *'])
      for (const shift of SHIFTS) {
        const written = await WRITERS[name]!(`${'> '.repeat(shift)}${mark.repeat(500)}core`)
        expect(JSON.stringify(written)).toContain('core')
      }
  })

  test.each(SHELLS.map(types => [types.join(', '), types] as const))('in ADF: %s', async (_, types) => {
    for (const shift of SHIFTS) {
      let node: AdfNode = nested(500, inside(...types)).content![0]!
      for (let level = 0; level < shift; level++) node = { type: 'blockquote', content: [node] }
      expect(await adfToMarkdown(doc(node))).toContain('core')
    }
  })

  test.each([
    ...['div', 'blockquote', 'strong', 'span', 'ul><li', 'table><tbody><tr><td', 'table><tr><th', 'p', 'h1', 'novel'],
    ...['ac:task-list><ac:task><ac:task-body', 'ac:structured-macro ac:name="x"><ac:rich-text-body', 'a href="x"'],
  ])('in storage format: <%s>', async tags => {
    for (const shift of SHIFTS)
      expect(await storageToMarkdown(`${'<div>'.repeat(shift)}${`<${tags}>`.repeat(500)}core`)).toContain('core')
  })

  test('but what is not for people stays away', async () => {
    for (const shift of SHIFTS) {
      const storage = `${'<div>'.repeat(95 + shift)}a<ac:placeholder><b>no</b></ac:placeholder><script>no</script>b`
      expect(await storageToMarkdown(storage)).toBe('ab\n')
    }
  })
})

describe('whatever is written in a text', () => {
  /** Texts as Markdown keeps them: blanks as one, and none around. */
  const kept = (value: string) =>
    value
      .toWellFormed()
      .replaceAll('\0', '\ufffd')
      .replace(/[\s\u0085]+/g, ' ')
      .trim()
  const textOf = ({ text: own = '', content = [] }: AdfNode): string => own + content.map(textOf).join('')
  const texts = hostileTexts(random, 400)

  test('comes back from ADF and from Markdown as it was', async () => {
    for (const each of texts) {
      const written = await markdownToAdf(await adfToMarkdown(doc({ type: 'paragraph', content: [text(each)] })))
      expect(kept(textOf(written))).toBe(kept(each))
      expect(adfProblems(written)).toEqual([])
    }
  })

  test('is text in HTML, and no other element', () => {
    for (const each of texts)
      expect(markdownToHtml(each)).not.toMatch(
        /<(?!\/?(p|h[1-6]|ul|ol|li|code|pre|em|strong|s|br|hr|a|blockquote|t\w+)\b)/,
      )
  })

  test('never makes a document that Jira refuses, or a page that reads itself otherwise', async () => {
    for (const each of texts) {
      expect(adfProblems(await markdownToAdf(each))).toEqual([])
      // A page has no characters that XML has not, so that a paragraph of these is empty the first time.
      const again = async (storage: string) => markdownToStorage(await storageToMarkdown(storage))
      const storage = await again(await again(each))
      expect(await again(storage)).toBe(storage)
      markdownToChat(each, plain)
    }
  })

  test('in any field of a document, as any value, is read', async () => {
    const types = ['text', 'table', 'taskList', 'heading', 'mention', 'date', 'codeBlock', 'orderedList', 'media']
    const field = () => hostileJson(random, 2)
    for (let round = 0; round < 500; round++) {
      const own = { type: random.of([...types, field()]), text: field(), attrs: field(), marks: [field()] }
      const attrs = { level: field(), order: field(), id: field(), text: field(), href: field(), timestamp: field() }
      const odd = [own, { ...own, attrs, content: [own, field()] }, { type: 'paragraph', content: [own, field()] }]
      await adfToMarkdown({ type: 'doc', content: odd } as unknown as AdfNode)
      await adfToMarkdown(field() as AdfNode)
    }
  })

  test('is no link in a chat if a mark was escaped', () => {
    const harmless = { ...plain, text: (part: string) => part.replaceAll('](', '] (') }
    expect(markdownToChat('[the bank\\](https://evil.test)', harmless)).not.toContain('](')
  })
})

/** A tree without what Markdown need not keep: empty blocks, the borders of texts, marks in the same mark. */
const words = (blocks: unknown): string =>
  JSON.stringify(blocks, (key, value) => (key === 'spread' || key === 'align' ? undefined : value)).replace(/\s+/g, ' ')

test('what is printed is read as the same tree', () => {
  fc.assert(
    fc.property(anyDocuments, markdown => {
      const once = printMarkdown(parseMarkdown(printMarkdown(parseMarkdown(markdown))))
      expect(printMarkdown(parseMarkdown(once))).toBe(once)
      expect(words(parseMarkdown(printMarkdown(parseMarkdown(once))))).toBe(words(parseMarkdown(once)))
    }),
    { numRuns: 500, seed: random.below(2 ** 31) },
  )
})

test.each<[string, string?]>([
  ['a **bold** *slanted* ~~gone~~ `code` text\n'],
  ['snake\\_\\_case, a\\@b.example, www\\.a.example, https\\://a.example\n'],
  ['*a*_b_**c**\n'],
  ['a&#x62;**(c)**&#x64;e\n'],
  ['**strong _both_**\n'],
  ['- a\n\n  3. b\n- c\n\n  d\n\n* e\n'],
  ['- * -\n'],
  ['- ___\n'],
  ['> a\n\n> b\n'],
  ['1. a\n2. b\n\n3) c\n'],
  ['a\\\n\\- b\\\n2\\. c\\\n\\=\n'],
  ['# a #\\#\n'],
  ['````\n```\n````\n'],
  ['``a`b`` `` ` ``\n'],
  ['| a | b |\n| :- | -: |\n| `x\\|y` | |\n'],
  ['[a\\]](</x y> "t")\n', '[a\\]](</x y>)\n'],
  ['![a](\\(b)\n'],
])('%j is printed as it was written', (...[markdown, printed]) => {
  expect(printMarkdown(parseMarkdown(markdown))).toBe(printed ?? markdown)
})
