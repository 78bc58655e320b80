// Asks a person at a terminal for the fields of a form, one after the other.

import { createInterface, type Interface } from 'node:readline/promises'
import { CadreError, messageOf } from '../../../error.ts'
import type { Json, JsonObject } from '../../../json.ts'
import { inputsFromArguments, problemWith } from '../../../team/team.ts'
import { line, type Printable } from '../../../text/printable.ts'
import { printMessage } from '../../../text/terminal.ts'
import type { Field } from '../../../wire/records/forms.ts'
import { EXIT } from './exit.ts'

export const isAtTerminal = (): boolean => process.stdin.isTTY && process.stderr.isTTY

/** Asks until the answer is one of `choices`; an unmistakable beginning is enough. */
export function askChoice<C extends string>(question: string, choices: readonly C[]): Promise<C> {
  return asking(async lines => {
    for (;;) {
      const read = readChoice(await ask(lines, line`${question} (${choices.join(', ')}): `), choices)
      if ('choice' in read) return read.choice
      printMessage(line`${read.wrong}`)
    }
  })
}

/** What was chosen, or what is wrong with the text. */
export function readChoice<C extends string>(text: string, choices: readonly C[]): { choice: C } | { wrong: string } {
  const typed = text.trim().toLowerCase()
  const all = choices.join(', ')
  if (typed === '') return { wrong: `please answer: ${all}` }
  const found = choices.filter(choice => choice.startsWith(typed))
  if (found.length === 1) return { choice: found[0]! }
  return {
    wrong: found.length === 0 ? `${typed} is not an answer: ${all}` : `${typed} may be ${found.join(' or ')}`,
  }
}

/** Says which required fields have no value, and how to give them; null when none lacks. */
export function lackOf(fields: readonly Field[], values: JsonObject): string | null {
  const lacking = fields.filter(
    ({ name, required, default: preset }) => required && preset === undefined && values[name] === undefined,
  )
  if (lacking.length === 0) return null
  const names = lacking.map(({ name, type, choices }) => `${name} (${choices ? choices.join(' or ') : type})`)
  const sample = Object.fromEntries(lacking.map(({ name, type, choices }) => [name, choices?.[0] ?? SAMPLES[type]]))
  const them = lacking.length === 1 ? 'it' : 'them'
  return `the form lacks ${names.join(', ')}: give ${them} with --values '${JSON.stringify(sample)}'`
}

const SAMPLES: Readonly<Record<Field['type'], Json>> = {
  string: '…',
  number: 1,
  boolean: true,
  list: [],
  object: {},
  file: '…',
}

/** Fields that are left empty keep their default, or are not given. */
export function askForm(fields: readonly Field[]): Promise<JsonObject> {
  return asking(async lines => {
    const values: JsonObject = {}
    for (const field of fields) Object.assign(values, await askField(lines, field))
    return values
  })
}

async function askField(lines: Interface, field: Field): Promise<JsonObject> {
  const { name, type, required, choices, description } = field
  const kind = choices ? choices.map(choice => String(choice)).join(', ') : type === 'boolean' ? 'yes or no' : type
  const empty =
    field.default === undefined ? (required ? '' : ', may be empty') : `, default ${JSON.stringify(field.default)}`
  const question = line`${name} (${kind}${empty})${description === undefined ? '' : ` ${description}`}: `
  for (;;) {
    const typed = (await ask(lines, question)).trim()
    if (typed === '') {
      if (!required || field.default !== undefined) return {}
      printMessage(line`${name} is required: ${kind}`)
      continue
    }
    const read = await readField(field, type === 'boolean' ? yesOrNo(typed) : typed)
    if (typeof read !== 'string') return read
    printMessage(line`${read}`)
  }
}

/** What is wrong with the text, if it does not fit the field. */
async function readField(field: Field, text: string): Promise<JsonObject | string> {
  try {
    const values = await inputsFromArguments([field], [`${field.name}=${text}`])
    return problemWith(values[field.name]!, field) ?? values
  } catch (error) {
    if (!(error instanceof CadreError)) throw error
    return messageOf(error).replace(`-i ${field.name}: `, '')
  }
}

function yesOrNo(typed: string): string {
  if (/^y(es)?$/i.test(typed)) return 'true'
  return /^no?$/i.test(typed) ? 'false' : typed
}

const ask = (lines: Interface, question: Printable): Promise<string> => lines.question(question.text)

/** Ctrl-C and the end of the input leave without an answer. */
async function asking<T>(work: (lines: Interface) => Promise<T>): Promise<T> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const leave = () => process.exit(EXIT.interrupted)
  lines.on('SIGINT', leave)
  lines.on('close', leave)
  try {
    return await work(lines)
  } finally {
    lines.off('close', leave)
    lines.close()
  }
}
