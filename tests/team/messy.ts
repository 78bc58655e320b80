// YAML as people leave it, from a seed: every style of a value at any place, with comments wherever YAML allows one.

import type { Random } from '../support/random.ts'

export interface Messy {
  text: string
  /** The comments in order. */
  comments: string[]
}

const KEYS = [
  'a',
  'b',
  'inputs',
  'commands',
  'name',
  'name',
  'items',
  'phases',
  'phases',
  'default',
  'version',
  'größe',
  '日本',
  'on',
  'no',
  'x-y',
  '1.5',
]
const QUOTED_KEYS = ['"quoted"', "'single'", '"{{ k }}"', '"with: colon"', "'it''s'", '"\\u00e9"', '"true"']
const NUMBERS = [
  '0',
  '-0',
  '00123',
  '+1',
  '.5',
  '5.',
  '1e3',
  '1E+3',
  '1.50',
  '0o17',
  '0xFf',
  '1_000',
  '9007199254740991',
]
const LIKE_OTHERS = [
  'on',
  'yes',
  'True',
  '~',
  'null',
  'Null',
  '2024-01-01',
  '12:30',
  '<',
  '=',
  '0b1',
  '1.2.3',
  '-',
  '?',
]
const TEXTS = [
  'plain',
  'two words',
  'Grüße 👋',
  'a#b',
  "it's",
  'x {{ inputs.a }} y',
  'a: b'.replace(' ', ''),
  '-1x',
  'x'.repeat(300),
]
const LONG = Array.from({ length: 60 }, (_, at) => `word${at}`).join(' ')
const SINGLE = ["''", "'x'", "'it''s'", "'# none'", '\'{{ phases.a.data["x"] }}\'', "' spaces '", `'${LONG}'`]
const DOUBLE = [
  '""',
  '"x"',
  '"a\\tb\\nc"',
  '"\\u263a\\x41"',
  '"\\u00a0\\u200b"',
  '"{{ inputs.a + \'b\' }}"',
  '" x "',
  '"\\"q\\""',
  '"0o17"',
  `"${LONG}"`,
  '"\\/"',
]
const FLOW_TEXTS = ['plain', 'two words', 'größe', "it's", '-1x', 'x'.repeat(150)]
const BLOCK_LINES = [
  'x',
  'set -e',
  '  indented',
  '# no comment',
  'echo "{{ inputs.a }}"',
  '- item',
  'key: value',
  'trailing  ',
  '\ttab',
  '日本',
  '---x',
  LONG,
]

/** A document of several fields, of which every value is one that `readYaml` takes. */
export function messyYaml(random: Random): Messy {
  const writer = new Writer(random)
  return { text: writer.document(), comments: writer.comments }
}

class Writer {
  readonly comments: string[] = []
  readonly #random: Random
  readonly #anchors: string[] = []
  #out = ''
  #end: string
  /** Whether what is indented belongs to a text. */
  #isInText = false

  constructor(random: Random) {
    this.#random = random
    this.#end = random.once(4) ? '\r\n' : '\n'
  }

  document(): string {
    const { once, below } = this.#random
    const head = below(8)
    if (head === 0) this.#line('%YAML 1.2')
    if (head <= 1) this.#line(once(2) ? '---' : `--- ${this.#comment()}`)
    this.#between(0)
    this.#map(once(8) ? 2 : 0, 0, 1 + below(6))
    this.#between(0)
    if (once(12)) this.#line('...')
    if (once(4)) this.#out = this.#out.replace(/[\r\n]+$/, '')
    return this.#out.replaceAll('\n', this.#end)
  }

  #line(text: string): void {
    this.#out += `${text}\n`
  }

  #comment(): string {
    const { of } = this.#random
    const text = `#${of(['', ' ', '  ', '\t'])}c${this.comments.length}${of(['', ' "quote', ' a: b', ' {{ x }}', ' # more', ' ünï', '  '])}`
    this.comments.push(text.trim())
    return text
  }

  /** Blank lines and comments, at any indentation that leaves the structure alone. */
  #between(indent: number): void {
    const { once, below, of } = this.#random
    for (let count = once(3) ? 1 + below(3) : 0; count > 0; count--) {
      if (once(2)) this.#line(of(['', '', '   ']))
      else
        this.#line(' '.repeat(this.#isInText ? 0 : of([indent, indent, 0, indent + 2, indent + 5])) + this.#comment())
    }
  }

  /** What may stand after a value in its line. */
  #after(): string {
    const { once, of } = this.#random
    return once(4) ? of([' ', '   ', '\t']) + this.#comment() : of(['', '', '', ' ', '\t'])
  }

  #anchor(): string {
    const { once } = this.#random
    if (!once(15)) return ''
    const name = `n${this.#anchors.length}`
    this.#anchors.push(name)
    return `&${name} `
  }

  #map(indent: number, depth: number, count: number, first = ''): void {
    const { once, of } = this.#random
    const used = new Set<string>()
    for (let at = 0; at < count; at++) {
      const key = once(5) ? of(QUOTED_KEYS) : of(KEYS)
      if (used.has(key)) continue
      used.add(key)
      if (at > 0) this.#between(indent)
      const lead = at === 0 && first !== '' ? first : ' '.repeat(indent)
      if (once(25)) {
        this.#line(`${lead}? ${key}`)
        this.#value(`${' '.repeat(indent)}:`, indent, depth)
      } else this.#value(`${lead}${key}${once(8) ? ' ' : ''}:`, indent, depth)
    }
  }

  #list(indent: number, depth: number): void {
    const { below, once, of } = this.#random
    for (let at = 0, count = 1 + below(4); at < count; at++) {
      if (at > 0) this.#between(indent)
      const dash = `${' '.repeat(indent)}-`
      if (depth < 4 && once(2)) {
        const gap = of([' ', ' ', '   '])
        this.#map(indent + 1 + gap.length, depth + 1, 1 + below(3), dash + gap)
      } else this.#value(dash, indent, depth)
    }
  }

  /** A value after `head`, which is a key with its colon or a dash. */
  #value(head: string, indent: number, depth: number): void {
    this.#isInText = false
    const { once, of, below } = this.#random
    const gap = of([' ', ' ', ' ', '   ', '\t'])
    const isItem = head.endsWith('-')
    const space = isItem && gap === '\t' ? ' ' : gap
    const kind = below(depth < 4 ? 14 : 9)
    if (kind === 0) return this.#line(head + this.#after())
    if (kind === 1 && this.#anchors.length > 0) return this.#line(`${head} *${of(this.#anchors)}${this.#after()}`)
    if (kind <= 4) return this.#line(head + space + this.#anchor() + this.#scalar() + this.#after())
    if (kind === 5) return this.#broken(head, space, indent)
    if (kind === 6) return this.#block(head, space, indent)
    if (kind <= 8) {
      this.#out += head + space + this.#anchor()
      this.#flow(indent + 1, 0)
      return this.#line(this.#after())
    }
    const anchor = this.#anchor()
    this.#line(head + (anchor && ` ${anchor.trim()}`) + this.#after())
    this.#between(indent + 1)
    const inside = indent + 1 + below(4)
    if (kind <= 11) this.#map(inside, depth + 1, 1 + below(4))
    else this.#list(isItem || once(2) ? inside : indent, depth + 1)
  }

  #scalar(): string {
    const { of, below } = this.#random
    const kind = below(5)
    if (kind === 0) return of(NUMBERS)
    if (kind === 1) return of(LIKE_OTHERS.slice(0, -2))
    if (kind === 2) return of([...TEXTS, LONG])
    return of(kind === 3 ? SINGLE : DOUBLE)
  }

  /** A text over several lines. */
  #broken(head: string, space: string, indent: number): void {
    const { of, once } = this.#random
    const pad = ' '.repeat(indent + 1 + of([0, 1, 4]))
    const quote = of(['', '"', "'"])
    const more = once(2) ? `\n${pad}last` : ''
    const middle = of([`\n${pad}`, `\n\n${pad}`, `  \n\n\n${pad}`, quote === '"' ? `\\\n${pad}` : `\n${pad}`])
    this.#line(`${head}${space}${quote}first line${middle}more of it${more}${quote}${quote ? this.#after() : ''}`)
  }

  #block(head: string, space: string, indent: number): void {
    const { of, below, once } = this.#random
    const given = once(3)
    const deep = given ? 1 + below(4) : of([1, 2, 4])
    const chomp = of(['', '', '-', '+'])
    const mark = of(['|', '>']) + of(given ? [`${deep}${chomp}`, `${chomp}${deep}`] : [chomp])
    this.#line(head + space + this.#anchor() + mark + (once(5) ? ` ${this.#comment()}` : ''))
    const pad = ' '.repeat(indent + deep)
    const lines = Array.from({ length: 1 + below(5) }, () => (once(4) ? '' : of(BLOCK_LINES)))
    // Without a number, the first line says how far the block is indented.
    if (!given && /^\s/.test(lines.find(each => each !== '') ?? '')) lines.unshift('first')
    for (const each of lines) this.#line(each === '' ? of(['', '', ' '.repeat(below(indent + deep + 1))]) : pad + each)
    for (let count = once(3) ? below(3) : 0; count > 0; count--) this.#line('')
    this.#isInText = true
  }

  #flow(indent: number, depth: number): void {
    const { of, below, once } = this.#random
    const isMap = once(2)
    this.#out += isMap ? '{' : '['
    this.#gap(indent)
    const used = new Set<string>()
    const count = below(5)
    for (let at = 0; at < count; at++) {
      if (isMap) {
        const key = once(4) ? of(QUOTED_KEYS) : of(KEYS)
        if (used.has(key)) continue
        if (used.size > 0) this.#comma(indent)
        used.add(key)
        this.#out += key
        if (once(8)) continue
        this.#out += ': '
      } else {
        if (at > 0) this.#comma(indent)
        if (once(10)) this.#out += `${of(KEYS)}: `
      }
      if (depth < 3 && once(4)) this.#flow(indent, depth + 1)
      else this.#out += of([of(FLOW_TEXTS), of(NUMBERS), of(SINGLE), of(DOUBLE), of(['null', 'yes', '~'])])
    }
    if ((used.size > 0 || (!isMap && count > 0)) && once(5)) this.#comma(indent)
    else this.#gap(indent)
    this.#out += isMap ? '}' : ']'
  }

  #comma(indent: number): void {
    this.#out += ','
    this.#gap(indent)
  }

  #gap(indent: number): void {
    const { below, of } = this.#random
    const pad = ' '.repeat(indent + of([1, 2, 5]))
    const kind = below(10)
    if (kind === 0) this.#out += ` ${this.#comment()}\n${pad}`
    else if (kind === 1) this.#out += `\n${pad}${this.#comment()}\n\n${pad}`
    else this.#out += of(['', ' ', ' ', `\n${pad}`])
  }
}
