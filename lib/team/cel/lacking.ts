// What an error adds about a value that is missing in the result of a completed phase: what the phase gave instead, and
// what it said, which has the reason where an agent knows one.

import { isObject, type Json } from '../../json.ts'
import { oneLine } from '../../text/one-line.ts'
import { didYouMean } from '../../text/spelling.ts'
import type { PhaseValue, Scope } from '../model/model.ts'
import type { Mistake } from './hints.ts'
import { lengthHint } from './known.ts'
import type { Access } from './survey.ts'

/** Maximum numbers of names, and of characters of what the phase said. */
const NAMES = 20
const SAID = 300

/** Adds to an error of an evaluation what the phase gave in whose result the value was looked for. */
export function withWhatIsThere(mistake: Mistake, error: unknown, accesses: readonly Access[], scope: Scope): Mistake {
  const [, key, index] =
    /^No such key: (?:(?!index out of bounds)(.*)|index out of bounds.*?(\d+).*)$/s.exec(mistake.message) ?? []
  for (const { node, root, keys } of accesses) {
    const [name, field, ...path] = root === 'result' ? ['', ...keys] : keys
    if ((root !== 'phases' && root !== 'result') || name === undefined || (node.op !== '.' && node.op !== '[]'))
      continue
    const given = name === '' ? resultIn(scope) : { ...scope.phase(name), of: `phase ${name}` }
    const there =
      field === 'data' && key !== undefined && node === (error as { node?: object }).node
        ? dataThere(given, path)
        : field === 'files' && index !== undefined
          ? filesThere(given, Number(index))
          : null
    if (there !== null) return { ...mistake, ...there, message: `${mistake.message}${there.message}` }
  }
  if (key === undefined) return mistake
  if (key === 'length') return { ...mistake, message: `${mistake.message}${lengthHint(key)}`, isCorrected: true }
  // Probably in an item of a list of one of the phases.
  const named = new Set(accesses.flatMap(({ root, keys }) => (root === 'phases' ? keys.slice(0, 1) : [])))
  const said = [...named].map(name => [name, quoted(scope.phase(name).text)]).filter(([, text]) => text !== '')
  return said.length === 0
    ? mistake
    : {
        ...mistake,
        message: `${mistake.message}: ${said.map(([name, text]) => `phase ${name} said ${text}`).join('; ')}`,
      }
}

function quoted(text: string): string {
  const said = oneLine(text)
  return said && `(${said.length > SAID ? `${said.slice(0, SAID)}…` : said})`
}

type There = Pick<Mistake, 'message' | 'isCorrected'>
/** A result, and whose it is. */
type Given = Pick<PhaseValue, 'state' | 'text' | 'data' | 'files'> & { of: string }

const resultIn = ({ result }: Scope): Given => ({ ...result!, state: 'completed', of: 'this turn' })

function dataThere({ state, data, text, of }: Given, path: readonly string[]): There | null {
  const key = path.at(-1)!
  const owner = path.slice(0, -1).reduce<Json>((value, each) => (isObject(value) ? (value[each] ?? null) : null), data)
  if (state !== 'completed' || (isObject(owner) && Object.hasOwn(owner, key))) return null
  const names = isObject(owner) ? Object.keys(owner) : []
  const place = ['data', ...path.slice(0, -1)].join('.')
  const more = names.length > NAMES ? ` and ${names.length - NAMES} more` : ''
  const nothing = owner === null ? 'is null' : 'has no fields'
  const has = names.length > 0 ? `has ${names.slice(0, NAMES).join(', ')}${more}` : nothing
  const near = lengthHint(key) || didYouMean(key, names)
  const message = `${near}: ${place} of ${of} ${has} ${quoted(text)}`.trimEnd()
  return { message, ...(near !== '' && { isCorrected: true }) }
}

function filesThere({ state, files, of }: Given, index: number): There | null {
  if (state !== 'completed' || index < files.length) return null
  return {
    message: `: ${of} has ${files.length === 0 ? 'no files' : `only ${files.length}`}`,
    isCorrected: true,
  }
}
