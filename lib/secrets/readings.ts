// All ways to read the characters of a text. A character may stand for itself or be escaped as in JSON, a shell, a URL,
// HTML or a mail (quoted-printable), also twice or three times over, and a line may be broken or coloured anywhere.

/** How many escapes may lie in each other: JSON in JSON. */
const DEPTH = 2
/** The maximum number of characters that are passed over between two bytes of a secret: line breaks, and what hex has. */
export const GAP = 128
/** The maximum number of characters in which one byte of a secret is written, with some room for line breaks. */
export const WIDTH = 16
/** The maximum number of places of which the readings are kept. */
const MOST_KNOWN = 4_096
/** The maximum length of the name of a character, `#x1F600` with its semicolon. */
const ENTITY = 9
/** The maximum length of a command of a terminal, such as a colour (ECMA-48, 5.4). */
const CONTROL = 32

export const BACKSLASH = 92
const PERCENT = 37
const AMPERSAND = 38
const EQUALS = 61
const HASH = 35
const SEMICOLON = 59
export const NEW_LINE = 10
const RETURN = 13
const ESCAPE = 27

export const flags = (characters: string): Uint8Array => {
  const table = new Uint8Array(256)
  for (const each of characters) table[each.charCodeAt(0)] = 1
  return table
}
/** What begins an escape. */
export const LEADS: readonly number[] = [BACKSLASH, PERCENT, AMPERSAND, EQUALS]
export const ESCAPES = flags(String.fromCharCode(...LEADS))
/** Where a text may mean something else than it says, or nothing. */
export const SPECIAL = flags('\\%&=\n\r\x1b')

/** One character as it may be read: its bytes, and where the next one begins. */
export interface Reading {
  bytes: string
  next: number
}

export const isBlank = (code: number): boolean => code === 32 || code === 9
export const isLineEnd = (code: number): boolean => code === NEW_LINE || code === RETURN
const isHex = (code: number): boolean =>
  (code >= 48 && code <= 57) || (code >= 65 && code <= 70) || (code >= 97 && code <= 102)
/** Whether a text may go on behind it: a line break, or one that an escape hides. */
export const isBreak = (bytes: string): boolean => bytes === '' || bytes === '\n' || bytes === '\r'

/** What `readingsAt` found in the text that was read last, because places are visited from many others. */
const known = new Map<number, Reading[]>()
let knownOf: string | null = null

/** The same as `readingsAt`, with as many escapes in each other as are resolved at all. */
export function meanings(input: string, at: number, final: boolean): Reading[] | null {
  if (!ESCAPES[input.charCodeAt(at)]) return readingsAt(input, at, 0, final)
  if (knownOf !== input || known.size > MOST_KNOWN) {
    known.clear()
    knownOf = input
  }
  const found = known.get(at) ?? readingsAt(input, at, DEPTH, final)
  if (found !== null) known.set(at, found)
  return found
}

/** The bytes for which the text at `at` may stand; null for a line break, and where that takes more than a short look. */
export function bytesOf(input: string, at: number): number[] | null {
  const code = input.charCodeAt(at)
  if (at >= input.length || isLineEnd(code) || code === ESCAPE) return null
  if (!ESCAPES[code]) return [code]
  const simple = simpleAt(input, at, code)
  if (simple === null) return [code]
  if (simple) return isBreak(simple.bytes) ? null : [code, simple.bytes.charCodeAt(0)]
  const escaped = code === BACKSLASH ? afterBackslashes(input, at) : null
  return escaped === null ? null : [code, escaped]
}

/** The character that the end of a short run of backslashes escapes; null where that takes a longer look. */
function afterBackslashes(input: string, at: number): number | null {
  let next = at + 1
  while (input.charCodeAt(next) === BACKSLASH && next - at < WIDTH) next++
  const simple = simpleAt(input, next - 1, BACKSLASH)
  return simple && !isBreak(simple.bytes) ? simple.bytes.charCodeAt(0) : null
}

/** Whether an escape that `lead` begins may go on with `second` and stand for what `mayBegin` a secret. */
export function follows(lead: number, second: number, mayBegin: (code: number) => boolean): boolean {
  if (isLineEnd(second)) return true
  const character = String.fromCharCode(second)
  if (lead === AMPERSAND) return /[a-z#]/i.test(character)
  if (lead !== BACKSLASH) return isHex(second)
  return /[ux0-7]/.test(character) || mayBegin((CONTROLS[character] ?? character).charCodeAt(0))
}

/** All ways to read the character at `at`, the most literal first. Null when the end of `input` cuts it off. */
function readingsAt(input: string, at: number, depth: number, final: boolean): Reading[] | null {
  const literal = { bytes: input[at]!, next: at + 1 }
  const lead = input.charCodeAt(at)
  if (lead === ESCAPE) return coloured(input, at, final)
  if (depth === 0 || !ESCAPES[lead]) return [literal]
  const simple = simpleAt(input, at, lead)
  if (simple !== undefined) return simple === null ? [literal] : [literal, simple]
  const below = readingsAt(input, at, depth - 1, final)
  if (below === null) return null
  const all = [...below]
  for (const { bytes, next } of below) {
    if (bytes.length !== 1 || !ESCAPES[bytes.charCodeAt(0)]) continue
    const read = reader(input, next, depth - 1)
    // A line may also be continued by a backslash (a shell, C) or an equals sign (RFC 2045, 6.7) at its end.
    const behind = next < input.length ? readingsAt(input, next, depth - 1, true)! : []
    const end = behind.find(each => isBreak(each.bytes))
    if (end && bytes !== '%' && bytes !== '&') all.push({ bytes: '', next: end.next })
    const escaped = resolve(bytes.charCodeAt(0), read)
    if (escaped === 'cut') {
      if (!final) return null
      continue
    }
    if (escaped && !all.some(each => each.bytes === escaped.bytes && each.next === escaped.next)) all.push(escaped)
  }
  return all
}

/** A command of a terminal, as a tool that marks a part of a word prints it, means nothing. */
function coloured(input: string, at: number, final: boolean): Reading[] | null {
  const literal = { bytes: input[at]!, next: at + 1 }
  const [found] = /^\x1b\[[0-?]*[ -/]*[@-~]/.exec(input.slice(at, at + CONTROL)) ?? []
  if (found !== undefined) return [literal, { bytes: '', next: at + found.length }]
  const isCut = !final && input.length - at < CONTROL && /^\x1b(\[[0-?]*[ -/]*)?$/.test(input.slice(at))
  return isCut ? null : [literal]
}

/**
 * The escape that begins at `at`, where the bytes behind it decide it without a look at what lies in it: null when there
 * is none, undefined when that takes a longer look.
 */
function simpleAt(input: string, at: number, lead: number): Reading | null | undefined {
  const second = input.charCodeAt(at + 1)
  if (Number.isNaN(second) || ESCAPES[second]) return undefined
  if (isLineEnd(second)) return undefined
  if (lead === AMPERSAND) return isEntity(input, at + 1) ? undefined : null
  if (lead === BACKSLASH) {
    if (second === 117 || second === 120 || (second >= 48 && second <= 55)) return undefined
    const character = input[at + 1]!
    return { bytes: CONTROLS[character] ?? character, next: at + 2 }
  }
  if (!isHex(second) || (lead === EQUALS && second >= 97)) return null
  const third = input.charCodeAt(at + 2)
  if (Number.isNaN(third) || SPECIAL[third]) return undefined
  if (!isHex(third) || (lead === EQUALS && third >= 97)) return null
  const code = Number.parseInt(input.slice(at + 1, at + 3), 16)
  return ESCAPES[code] ? undefined : { bytes: String.fromCharCode(code), next: at + 3 }
}

/** Whether what is behind an ampersand may be the name of a character: not `&page=2`. */
function isEntity(input: string, from: number): boolean {
  for (let next = from; next < from + ENTITY; next++) {
    const code = input.charCodeAt(next)
    // The end of the text, too, or something that is escaped itself.
    if (Number.isNaN(code) || code === SEMICOLON || (SPECIAL[code] && code !== EQUALS)) return next > from
    const isDigit = code >= 48 && code <= 57
    if (!isDigit && code !== HASH && !(code >= 97 && code <= 122) && !(code >= 65 && code <= 90)) return false
  }
  return false
}

/** Reads characters one after the other, each with as many escapes resolved as `depth` allows. */
interface Reader {
  /** The next character beyond line breaks; '' at the end of the text. */
  take(): string
  /** Where the character after the last one begins. */
  readonly next: number
}

function reader(input: string, from: number, depth: number): Reader {
  let next = from
  const read = () => (next >= input.length ? null : readingsAt(input, next, depth, false)?.at(-1))
  return {
    take() {
      // One line break may lie within an escape, of one or two characters, and an indentation behind it.
      for (let breaks = 0; ; breaks++) {
        const reading = read()
        if (!reading) return ''
        next = reading.next
        if (!isBreak(reading.bytes) || breaks === 2) return reading.bytes || '\n'
        const most = next + GAP
        while (isBlank(input.charCodeAt(next)) && next < most) next++
      }
    },
    get next() {
      return next
    },
  }
}

/** What the escape that begins with `lead` stands for; null when it is none, and `cut` when the text ends within it. */
function resolve(lead: number, read: Reader): Reading | null | 'cut' {
  if (lead === BACKSLASH) return backslashed(read)
  if (lead === AMPERSAND) return entity(read)
  const first = read.take()
  if (first === '') return 'cut'
  const digits = lead === PERCENT ? /^[0-9a-f]$/i : /^[0-9A-F]$/
  if (!digits.test(first)) return null
  const second = read.take()
  if (second === '') return 'cut'
  return digits.test(second) ? { bytes: byte(first + second, 16), next: read.next } : null
}

const CONTROLS: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' }

/** JSON (RFC 8259, 7), JavaScript, C and the shell. */
function backslashed(read: Reader): Reading | null | 'cut' {
  const kind = read.take()
  if (kind === '') return 'cut'
  if (kind === 'u') return unicode(read)
  if (kind === 'x') {
    const digits = read.take() + read.take()
    if (/^[0-9a-f]{2}$/i.test(digits)) return { bytes: byte(digits, 16), next: read.next }
    return digits.length < 2 ? 'cut' : null
  }
  if (/^[0-7]$/.test(kind)) {
    const digits = kind + read.take() + read.take()
    if (/^[0-3][0-7]{2}$/.test(digits)) return { bytes: byte(digits, 8), next: read.next }
    return digits.length < 3 ? 'cut' : null
  }
  return { bytes: CONTROLS[kind] ?? kind, next: read.next }
}

/** `\u0041`, a pair of surrogates, or `\u{41}`. */
function unicode(read: Reader): Reading | null | 'cut' {
  const first = read.take()
  if (first === '') return 'cut'
  if (first === '{') {
    let digits = ''
    for (;;) {
      const each = read.take()
      if (each === '') return 'cut'
      if (each === '}') return character(Number.parseInt(digits, 16), read.next)
      if (!/^[0-9a-f]$/i.test(each) || digits.length === 6) return null
      digits += each
    }
  }
  const unit = unitOf(first, read)
  if (typeof unit !== 'number') return unit
  if (unit < 0xd800 || unit > 0xdbff) return character(unit, read.next)
  const [slash, mark] = [read.take(), read.take()]
  if (mark === '') return 'cut'
  if (slash !== '\\' || mark !== 'u') return null
  const low = unitOf(read.take(), read)
  if (typeof low !== 'number') return low
  return character(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00), read.next)
}

function unitOf(first: string, read: Reader): number | null | 'cut' {
  const digits = first + read.take() + read.take() + read.take()
  if (/^[0-9a-f]{4}$/i.test(digits)) return Number.parseInt(digits, 16)
  return digits.length < 4 ? 'cut' : null
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** https://html.spec.whatwg.org/multipage/syntax.html#character-references: the five of XML, and all numbers. */
function entity(read: Reader): Reading | null | 'cut' {
  let name = ''
  for (;;) {
    const each = read.take()
    if (each === '') return 'cut'
    if (each === ';') break
    if (!/^[0-9a-z#]$/i.test(each) || name.length === 8) return null
    name += each
  }
  const named = ENTITIES[name]
  if (named !== undefined) return { bytes: named, next: read.next }
  const [, hex, digits] = /^#(x?)([0-9a-f]+)$/i.exec(name) ?? []
  return digits === undefined ? null : character(Number.parseInt(digits, hex ? 16 : 10), read.next)
}

/** A character as the bytes of UTF-8; null for a number that is none. */
function character(code: number, next: number): Reading | null {
  if (!(code >= 0 && code <= 0x10ffff) || (code >= 0xd800 && code <= 0xdfff)) return null
  return { bytes: Buffer.from(String.fromCodePoint(code)).toString('latin1'), next }
}

const byte = (digits: string, base: number): string => String.fromCharCode(Number.parseInt(digits, base))
