// The forms in which a secret may appear: as it is, in base64, in hexadecimal digits, all of them in UTF-16, too, and in
// parts that are secret by themselves, such as the password of an address. How each character of a form may be written is
// the matter of secret-matcher.ts. Pure.

import type { Form } from './secret-matcher.ts'

/** The minimum length of the path of a secret URL that is masked by itself. A shorter one may be an ordinary word. */
const SHORTEST_PATH = 16
/** The minimum length of a line of a secret text, such as a key, that is masked by itself. */
const SHORTEST_LINE = 8
/** Names of parameters whose values are credentials: `?password=…`, `&sslpassword=…`, `?access_token=…`. */
const CREDENTIAL = /(token|password|passwd|pwd|passphrase|secret|credential|signature|(^|[._-])key)$/i

/** What to look for, as bytes (Latin-1 characters). */
export function formsOf(value: string): Form[] {
  const forms: Form[] = []
  for (const plain of new Set([value, ...pathsOf(value)].map(text => text.trim()))) {
    const bytes = Buffer.from(plain)
    forms.push({ text: withoutBreaks(bytes.toString('latin1')), kind: 'text' })
    // In the body of a form, a blank is a plus sign.
    if (plain.includes(' '))
      forms.push({ text: withoutBreaks(bytes.toString('latin1')).replaceAll(' ', '+'), kind: 'text' })
    for (const encoded of [bytes, ...wideForms(plain)]) {
      if (encoded !== bytes) forms.push({ text: withoutBreaks(encoded.toString('latin1')), kind: 'text' })
      forms.push({ text: encoded.toString('hex'), kind: 'hex' })
      for (const text of base64Forms(encoded)) {
        forms.push({ text, kind: 'text' })
        if (/[+/]/.test(text)) forms.push({ text: text.replaceAll('+', '-').replaceAll('/', '_'), kind: 'text' })
      }
    }
  }
  for (const line of linesOf(value)) forms.push({ text: Buffer.from(line).toString('latin1'), kind: 'text' })
  return forms
}

/**
 * In UTF-16, as programs of Windows write. Where each unit has a byte of zero, what is between the first and the last of
 * the others is the same in both orders of bytes.
 */
function wideForms(plain: string): Buffer[] {
  const little = Buffer.from(plain, 'utf16le')
  if (/^[\x01-\xff]*$/.test(plain)) return [little.subarray(0, -1)]
  return [little, Buffer.from(little).swap16()]
}

/** A reader passes over line breaks and the blanks behind them, so a form has none. */
const withoutBreaks = (text: string): string => text.replace(/[\r\n]+[ \t]*/g, '')

/**
 * The base64 characters that depend only on `bytes`, for each of the three offsets that they can have in a longer text
 * (RFC 4648, 4).
 */
function base64Forms(bytes: Buffer): string[] {
  return [0, 1, 2].map(offset => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
    return encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6))
  })
}

/** The lines of a longer text. Armour (`-----BEGIN …`) is not secret, nor are the braces of a JSON document. */
function linesOf(value: string): string[] {
  const lines = value.trim().split(/\r?\n/)
  if (lines.length < 2) return []
  return lines.map(line => line.trim()).filter(line => line.length >= SHORTEST_LINE && !line.startsWith('-----'))
}

/**
 * The path of a secret URL, such as that of a webhook, and its secret part. A server may repeat only these in its
 * reply.
 */
function pathsOf(value: string): string[] {
  // Where an address has a credential of its own, its path is no secret.
  if (credentialsIn(value).length > 0) return []
  const url = /^https?:\/\//i.test(value.trim()) ? URL.parse(value.trim()) : null
  const paths = url ? [url.pathname, url.pathname + url.search, ...url.pathname.split('/')] : []
  return paths.filter(path => path.length >= SHORTEST_PATH)
}

/**
 * The credentials inside an address (RFC 3986, 3.2.1), as they stand in it and decoded: the password before the host, and
 * parameters whose names say that they are one. User, host, port, path and database are not among them. Empty for any
 * other text.
 * @example credentialsIn('postgres://ada:p%40ss@db.test/sales') // ['p%40ss', 'p@ss']
 */
export function credentialsIn(text: string): string[] {
  const [, rest] = /^\s*[a-z][a-z0-9+.:-]*:\/\/(.*)$/is.exec(text) ?? []
  if (rest === undefined) return []
  const authority = /^[^/?#]*/.exec(rest)![0]
  // People write passwords with a slash in them, too. The host then begins after the last @.
  const passwords = [authority, rest].flatMap(part => /^[^:/?#]*:(.+)@/s.exec(part)?.[1] ?? [])
  const query = /\?([^#]*)/.exec(rest)?.[1] ?? ''
  const parameters = query.split(/[&;]/).flatMap(pair => {
    const [name = '', ...value] = pair.split('=')
    return CREDENTIAL.test(name) && value.length > 0 ? [value.join('=')] : []
  })
  return [...new Set([...passwords, ...parameters].flatMap(raw => [raw, decoded(raw)]))].filter(each => each !== '')
}

/** The text with the credentials of an address masked: `postgres://ada:***@db.test/sales`. */
export function withoutCredentials(text: string): string {
  return credentialsIn(text).reduce((shown, each) => shown.replaceAll(each, '***'), text)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
