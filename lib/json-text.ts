// Reads JSON that others sent: in UTF-8, valid, and limited in depth.

import { CadreError } from './error.ts'
import type { Json } from './json.ts'

/** Deeper JSON is refused, so that functions that recurse over it do not overflow the stack. */
const MAX_DEPTH = 128

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The value that `bytes` say. Throws `invalid_request`; `what` names them in the message, as `the body` does. */
export function parseJson(bytes: Uint8Array, what: string): Json {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw new CadreError('invalid_request', `${what} is not valid UTF-8`)
  }
  if (tooDeep(text)) throw new CadreError('invalid_request', `${what} is nested deeper than ${MAX_DEPTH} levels`)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new CadreError('invalid_request', `${what} is not JSON: ${(error as Error).message}`)
  }
}

function tooDeep(text: string): boolean {
  if (text.length <= MAX_DEPTH) return false
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i)
    if (char === 0x22) {
      i = endOfString(text, i)
      // JSON.parse says what is wrong with it.
      if (i === -1) return false
    } else if (char === 0x7b || char === 0x5b) {
      if (++depth > MAX_DEPTH) return true
    } else if (char === 0x7d || char === 0x5d) depth--
  }
  return false
}

/** Where the string that begins at `start` ends; -1 if nowhere. Most of a body is strings, which are searched natively. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0
  while (text.charCodeAt(at - 1 - backslashes) === 0x5c) backslashes++
  return backslashes % 2 === 1
}
