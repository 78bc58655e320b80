// The template of what a sender of the scheme `hmac` signs.

import type { Part } from './schemes.ts'

const NAMES = ['timestamp', 'id', 'body'] as const

/** The parts of a template such as `{timestamp}.{body}`, or what to write instead. */
export function payloadOf(template: string): { parts: Part[]; problem: string | null } {
  const parts: Part[] = template.split(/(\{[^{}]*\})/).flatMap((piece, at): Part[] => {
    if (at % 2 === 0) return piece === '' ? [] : [{ text: piece }]
    return [NAMES.find(name => piece === `{${name}}`) ?? { text: piece }]
  })
  return { parts, problem: problemOf(parts) }
}

function problemOf(parts: readonly Part[]): string | null {
  const strange = parts.find(part => typeof part === 'object' && /[{}]/.test(part.text))
  if (typeof strange === 'object') return `has ${strange.text}: there are {timestamp}, {id} and {body}`
  const twice = NAMES.find(name => parts.filter(part => part === name).length > 1)
  if (twice) return `has {${twice}} twice: write it once`
  if (!parts.includes('body')) return 'must contain {body}: a body that is not signed can be changed by anybody'
  const at = parts.indexOf('id')
  if (at !== -1 && [parts[at - 1], parts[at + 1]].some(part => typeof part === 'string')) {
    return 'must have a text between {id} and what stands beside it: without one, a part of the body can pass for a part of the id'
  }
  return null
}

/** The texts beside the id. An id that contains one could be told apart from the rest in two ways. */
export function besideId(parts: readonly Part[]): string[] {
  const at = parts.indexOf('id')
  return [parts[at - 1], parts[at + 1]].flatMap(part => (typeof part === 'object' ? [part.text] : []))
}
