// Masks secrets wherever they would be recorded or sent: in text, JSON, and byte streams that may be split anywhere. No
// value that it knows passes, raw or in a usual encoding. It masks only known values, and the bytes of artifacts do not
// pass through it.
//
// Search: a table of the first two characters of every variant excludes nearly all positions, and the remaining ones
// are compared. Measured on 10 MB of log text with 50 secrets (200 variants): 85 ms as text, 115 ms as a stream. One
// regular expression of all variants takes 75 ms, but it finds neither overlapping secrets nor the point at which a
// stream must hold back.

const MASK = '***'
/** Shorter values are not masked, because that would mask ordinary words. They are listed in `warnings`. */
const SHORTEST = 6
/**
 * Minimum length of the path of a secret URL that is masked by itself. A shorter path contains no secret and may be an
 * ordinary word.
 */
const SHORTEST_PATH = 16

export interface KnownSecret {
  /** The origin of the value, for warnings: `agents.wiki.api_token`. */
  name: string
  value: string
}

export interface RedactedStream {
  /** Masks a chunk. The returned bytes leave out only an end that may be the beginning of a secret. */
  push(chunk: Uint8Array): Uint8Array
  end(): Uint8Array
}

export interface Redactor {
  text(text: string): string
  /** The same structure with strings and keys masked. Returns the value itself when nothing had to be masked. */
  json<T>(value: T): T
  stream(): RedactedStream
  /**
   * Adds a secret, which is masked from now on, also in streams that have already begun. Adding a known value costs
   * nothing.
   */
  add(secret: string | KnownSecret): void
  /** One line for each value that is too short to be masked. It has the name of the value, never the value. */
  readonly warnings: readonly string[]
}

export function createRedactor(secrets: Iterable<string | KnownSecret> = []): Redactor {
  const known = new Set<string>()
  const variants = new Set<string>()
  const warnings: string[] = []
  let forText: Matcher | null = null
  let forBytes: Matcher | null = null
  const ofText = () => (forText ??= createMatcher([...variants]))
  const ofBytes = () =>
    (forBytes ??= createMatcher([...variants].map(variant => Buffer.from(variant).toString('latin1'))))

  const add = (secret: string | KnownSecret) => {
    const { name, value } = typeof secret === 'string' ? { name: 'a secret', value: secret } : secret
    if (value.length === 0 || known.has(value)) return
    known.add(value)
    if (value.trim().length < SHORTEST) {
      warnings.push(`${name} has fewer than ${SHORTEST} characters: too short to be masked in logs and results`)
      return
    }
    for (const variant of variantsOf(value)) variants.add(variant)
    forText = forBytes = null
  }
  for (const secret of secrets) add(secret)

  const text = (plain: string) => (variants.size === 0 ? plain : ofText().mask(plain, 0, true).out)
  return {
    text,
    json: value => (variants.size === 0 ? value : (maskJson(value, text) as typeof value)),
    stream() {
      let held = ''
      let open = 0
      const feed = (chunk: string, final: boolean) => {
        const { out, stop, carry } = ofBytes().mask(held + chunk, open, final)
        held = (held + chunk).slice(stop)
        open = carry
        return Buffer.from(out, 'latin1')
      }
      return {
        push: chunk => (variants.size === 0 ? chunk : feed(Buffer.from(chunk).toString('latin1'), false)),
        end: () => feed('', true),
      }
    },
    add,
    warnings,
  }
}

function maskJson(value: unknown, text: (plain: string) => string): unknown {
  if (typeof value === 'string') return text(value)
  // A secret that consists only of digits may have become a number.
  if (typeof value === 'number') return text(String(value)) === String(value) ? value : text(String(value))
  if (typeof value !== 'object' || value === null) return value
  let changed = false
  const note = (before: unknown, after: unknown) => {
    if (before !== after) changed = true
    return after
  }
  if (Array.isArray(value)) {
    const items = value.map(item => note(item, maskJson(item, text)))
    return changed ? items : value
  }
  const entries = Object.entries(value).map(([key, item]) => [note(key, text(key)), note(item, maskJson(item, text))])
  return changed ? Object.fromEntries(entries) : value
}

/**
 * Every form that `value` may take in a log: raw, trimmed, each line of a longer text, JSON, URL encoding and base64.
 */
export function variantsOf(value: string): Set<string> {
  const raw = new Set([value, value.trim(), ...pathOf(value)])
  const found = new Set<string>()
  for (const plain of raw) {
    const json = JSON.stringify(plain).slice(1, -1)
    found.add(plain).add(json).add(JSON.stringify(json).slice(1, -1))
    for (const encoded of urlVariants(plain)) found.add(encoded)
    for (const encoded of base64Variants(plain)) {
      found.add(encoded).add(encoded.replaceAll('+', '-').replaceAll('/', '_')).add(encodeURIComponent(encoded))
    }
  }
  for (const line of value.split(/\r?\n/).map(line => line.trim())) {
    // Armour lines (`-----BEGIN …`) are not secret, nor are the braces of a JSON document.
    if (line.length >= 8 && !line.startsWith('-----')) found.add(line).add(JSON.stringify(line).slice(1, -1))
  }
  return found
}

/**
 * The path of a secret URL, such as that of a webhook, and its secret part. A server may repeat only these in its
 * reply.
 */
function pathOf(value: string): string[] {
  const url = /^https?:\/\//i.test(value.trim()) ? URL.parse(value.trim()) : null
  const paths = url ? [url.pathname, url.pathname + url.search, ...url.pathname.split('/')] : []
  return paths.filter(path => path.length >= SHORTEST_PATH)
}

function urlVariants(plain: string): string[] {
  const wellFormed = plain.toWellFormed()
  const component = encodeURIComponent(wellFormed)
  const form = new URLSearchParams([['', wellFormed]]).toString().slice(1)
  const upper = [component, form, encodeURI(wellFormed)]
  return [...upper, ...upper.map(text => text.replace(/%[0-9A-F]{2}/g, code => code.toLowerCase()))]
}

/**
 * The base64 characters that depend only on `plain`, for each of the three offsets that it can have in a longer text.
 */
function base64Variants(plain: string): string[] {
  const bytes = Buffer.from(plain)
  return [0, 1, 2].map(offset => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
    return encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6))
  })
}

interface Matcher {
  /**
   * Masks `input`. Its first `open` characters belong to a mask that was already written. Unless `final`, it stops
   * where a variant may begin that is cut off by the end of `input`. `carry` is then the value of `open` for the text
   * after `stop`.
   */
  mask(input: string, open: number, final: boolean): { out: string; stop: number; carry: number }
}

function createMatcher(variants: string[]): Matcher {
  const longest = Math.max(0, ...variants.map(({ length }) => length))
  const byHead = new Map<number, string[]>()
  const marked = new Uint8Array(65_536)
  const firsts = new Set(variants.map(variant => variant.charCodeAt(0)))
  const headAt = (text: string, at: number) => ((text.charCodeAt(at) & 255) << 8) | (text.charCodeAt(at + 1) & 255)
  for (const variant of variants.sort((a, b) => b.length - a.length)) {
    const head = headAt(variant, 0)
    marked[head] = 1
    byHead.set(head, [...(byHead.get(head) ?? []), variant])
  }

  const begins = (input: string, at: number): boolean => {
    if (at === input.length - 1) return firsts.has(input.charCodeAt(at))
    const head = headAt(input, at)
    if (marked[head] === 0) return false
    const rest = input.slice(at)
    return byHead.get(head)!.some(variant => variant.length > rest.length && variant.startsWith(rest))
  }

  return {
    mask(input, open, final) {
      const tail = final ? input.length : input.length - longest + 1
      let out = ''
      let end = open
      let stop = input.length
      for (let at = 0; at < input.length; at++) {
        if (at >= tail && begins(input, at)) {
          stop = at
          break
        }
        const head = headAt(input, at)
        if (marked[head] === 0) continue
        const found = byHead.get(head)!.find(variant => input.startsWith(variant, at))
        if (found === undefined) continue
        if (at >= end) out += input.slice(end, at) + MASK
        end = Math.max(end, at + found.length)
      }
      return { out: out + input.slice(end, Math.max(end, stop)), stop, carry: Math.max(0, end - stop) }
    },
  }
}
