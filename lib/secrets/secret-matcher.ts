// Finds secrets in text whichever way their characters are written. The text is read at each position as what it may
// mean (readings.ts), and compared with what is looked for; a list of all spellings would be endless.
//
// Search: a table of the first two bytes of every form excludes nearly all positions. What follows is compared byte by
// byte, and only at an escape or a line break are several readings followed at once.

import {
  BACKSLASH,
  bytesOf,
  ESCAPES,
  flags,
  follows,
  GAP,
  isBlank,
  isBreak,
  isLineEnd,
  LEADS,
  meanings,
  NEW_LINE,
  type Reading,
  SPECIAL,
  WIDTH,
} from './readings.ts'

export interface Form {
  /** Bytes, as Latin-1 characters, without line breaks. */
  text: string
  /** `hex`: lower-case digits, which are found in any case and with blanks, colons, dashes or commas between them. */
  kind: 'text' | 'hex'
}

export interface Matcher {
  /**
   * Masks `input`. Its first `open` characters belong to a mask that was already written. Unless `final`, it stops where
   * a secret may begin that is cut off by the end of `input`. `carry` is then the value of `open` for the text after
   * `stop`.
   */
  mask(input: string, open: number, final: boolean): { out: string; stop: number; carry: number }
}

const MASK = '***'
/** A match needs more text than there is. */
const PARTIAL = -1
const NONE = 0
/** With fewer characters of a secret at the end of a line, the next line is not waited for. */
const FEW = 4
const HEX_GAPS = flags(' \t\r\n:,-')

export function createMatcher(forms: readonly Form[]): Matcher {
  const longest = Math.max(0, ...forms.map(({ text }) => text.length))
  const most = longest * WIDTH + 16 * GAP
  const marked = new Uint8Array(65_536)
  const byHead = new Map<number, Form[]>()
  const firstBytes = new Set<number>()
  const put = (head: number, form: Form) => {
    const there = byHead.get(head)
    if (there) there.push(form)
    else byHead.set(head, [form])
  }
  for (const form of [...forms].sort((a, b) => b.text.length - a.text.length)) {
    const [first, second] = [form.text.charCodeAt(0), form.text.charCodeAt(1)]
    for (const a of casesOf(first, form)) {
      for (const b of casesOf(second, form)) {
        marked[(a << 8) | b] = 1
        put((a << 8) | b, form)
      }
      firstBytes.add(a)
    }
  }
  // A secret whose second byte is written in another way is found by its first.
  for (const first of firstBytes) {
    for (let second = 0; second < 256; second++) if (SPECIAL[second]) marked[(first << 8) | second] = 1
  }
  const mayBegin = (code: number) => firstBytes.has(code) || ESCAPES[code] === 1
  for (let second = 0; second < 256; second++) {
    for (const lead of LEADS) {
      if (ESCAPES[second] || follows(lead, second, mayBegin)) marked[(lead << 8) | second] = 1
    }
  }

  /** The end of the longest form that begins at `at`, or NONE, or PARTIAL. */
  function formAt(input: string, at: number, final: boolean): number {
    const likely = bytesOf(input, at)
    if (likely !== null && !likely.some(byte => firstBytes.has(byte))) return NONE
    const firsts = meanings(input, at, final)
    if (firsts === null) return PARTIAL
    let found = NONE
    for (const { bytes, next } of firsts) {
      const first = bytes.charCodeAt(0)
      if (!firstBytes.has(first)) continue
      const seconds = bytes.length > 1 ? [bytes.charCodeAt(1)] : bytesAt(input, next, final)
      if (seconds === null) return PARTIAL
      for (const second of seconds) {
        for (const form of byHead.get((first << 8) | second) ?? []) {
          const end = endOf(input, at, form, final)
          if (end === PARTIAL) return PARTIAL
          found = Math.max(found, end)
        }
      }
    }
    return found
  }

  return {
    mask(input, open, final) {
      let out = ''
      let end = open
      let stop = input.length
      for (let at = 0; at < input.length; at++) {
        if (marked[(input.charCodeAt(at) << 8) | (at + 1 < input.length ? input.charCodeAt(at + 1) : NEW_LINE)] === 0)
          continue
        const found = formAt(input, at, final || input.length - at > most)
        if (found === NONE) continue
        if (found === PARTIAL) {
          // A whole line is given out, unless enough of a secret stands at its end.
          if (isLineEnd(input.charCodeAt(input.length - 1)) && input.slice(at).trimEnd().length < FEW) continue
          stop = at
          break
        }
        if (at >= end) out += input.slice(end, at) + MASK
        end = Math.max(end, found)
      }
      return { out: out + input.slice(end, Math.max(end, stop)), stop, carry: Math.max(0, end - stop) }
    },
  }
}

/** A digit of hex in both cases; anything else as it is. */
function casesOf(code: number, { kind }: Form): number[] {
  return kind === 'hex' && code >= 97 ? [code, code - 32] : [code]
}

function endOf(input: string, at: number, form: Form, final: boolean): number {
  return form.kind === 'hex' ? endOfHex(input, at, form.text, final) : endOfText(input, at, form.text, final)
}

function endOfHex(input: string, at: number, digits: string, final: boolean): number {
  let gap = 0
  for (let found = 0, next = at; ; ) {
    if (found === digits.length) return next
    if (next >= input.length) return final ? NONE : PARTIAL
    const code = input.charCodeAt(next)
    const digit = digits.charCodeAt(found)
    // What a dump writes before each byte: 0x41, \x41.
    const mayMark = found % 2 === 0 && (code === 48 || code === BACKSLASH)
    if (mayMark && next + 1 === input.length && !final) return PARTIAL
    const mark = mayMark && input.charCodeAt(next + 1) === 120
    if (mark && digit !== 120) next += 2
    else if ((code >= 65 && code <= 70 ? code + 32 : code) === digit) {
      found++
      next++
      gap = 0
    } else if (found > 0 && HEX_GAPS[code] && gap < GAP) {
      gap++
      next++
    } else return NONE
  }
}

function endOfText(input: string, at: number, text: string, final: boolean): number {
  for (let found = 0, next = at; ; found++, next++) {
    if (found === text.length) return next
    if (next >= input.length) return final ? NONE : PARTIAL
    const code = input.charCodeAt(next)
    if (SPECIAL[code]) return endOfWritten(input, next, text, found, final)
    if (code !== text.charCodeAt(found)) return NONE
  }
}

/** The places at which the rest of a text may begin. One that is added while they are visited is visited, too. */
class Places extends Set<number> {
  /** Behind a line break, where blanks may indent the next line. */
  readonly #indented = new Set<number>()
  readonly #last: number

  constructor(place: number) {
    super()
    this.#last = place + GAP
    this.add(place)
  }

  /** Goes on behind what a broken text has between its parts. Returns whether the reading can be nothing else. */
  skip(place: number, { bytes, next }: Reading): boolean {
    const breaks = isBreak(bytes)
    if (!breaks && !(this.#indented.has(place) && isBlank(bytes.charCodeAt(0)))) return false
    if (next > this.#last) return breaks
    this.add(next)
    this.#indented.add(next)
    return breaks
  }
}

/** As `endOfText`, from a place that may be read in several ways. They are followed together. */
function endOfWritten(input: string, at: number, text: string, from: number, final: boolean): number {
  /** By the number of bytes found: where the rest may begin. */
  const waiting = new Map([[from, new Places(at)]])
  const note = (found: number, next: number) => {
    const there = waiting.get(found)
    if (there) there.add(next)
    else waiting.set(found, new Places(next))
  }
  for (let found = from; found < text.length; found++) {
    const places = waiting.get(found)
    waiting.delete(found)
    if (!places) continue
    // A place that is added while this goes on is visited, too.
    for (const place of places) {
      if (place >= input.length) {
        if (!final) return PARTIAL
        continue
      }
      const code = input.charCodeAt(place)
      if (!SPECIAL[code] && !isBlank(code)) {
        if (code === text.charCodeAt(found)) note(found + 1, place + 1)
        continue
      }
      const readings = meanings(input, place, final)
      if (readings === null) return PARTIAL
      for (const reading of readings) {
        places.skip(place, reading)
        if (reading.bytes !== '' && text.startsWith(reading.bytes, found)) {
          note(found + reading.bytes.length, reading.next)
        }
      }
    }
  }
  return Math.max(NONE, ...(waiting.get(text.length) ?? []))
}

/**
 * The bytes for which the text at `at` may stand, and perhaps some more, beyond line breaks. Null when the end of `input`
 * cuts it off.
 */
function bytesAt(input: string, at: number, final: boolean): number[] | null {
  const bytes = bytesOf(input, at)
  if (bytes !== null) return bytes
  const found: number[] = []
  const places = new Places(at)
  for (const place of places) {
    if (place >= input.length && !final) return null
    const readings = place < input.length ? meanings(input, place, final) : []
    if (readings === null) return null
    for (const reading of readings) if (!places.skip(place, reading)) found.push(reading.bytes.charCodeAt(0))
  }
  return found
}
