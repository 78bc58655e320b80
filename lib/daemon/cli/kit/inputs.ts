// The inputs of a run on the command line: `--inputs file.json`, then `-i name=value`, which takes precedence. The
// value of `-i name=@-` is read from stdin, so that a secret does not appear in the shell history.

import { CadreError } from '../../../error.ts'
import { isObject, type JsonObject } from '../../../json.ts'
import type { Field } from '../../../team/team.ts'
import { inputsFromArguments } from '../../../team/team.ts'

export interface InputOptions {
  input?: string[]
  inputs?: string
}

export async function readInputs(fields: readonly Field[], { input = [], inputs }: InputOptions): Promise<JsonObject> {
  const given = inputs === undefined ? {} : await readJsonFile(inputs)
  const [piped, others] = partition(input)
  if (piped.length > 1)
    throw new CadreError('invalid_request', `-i ${piped.join(' -i ')}: only one input is read from stdin`)
  const read = await Promise.all(piped.map(argument => pipedInput(fields, argument)))
  return Object.assign(given, await inputsFromArguments(fields, others), ...read)
}

function partition(input: string[]): [piped: string[], others: string[]] {
  const isPiped = (argument: string) => argument.endsWith('=@-') && argument.indexOf('=') === argument.length - 3
  return [input.filter(isPiped), input.filter(argument => !isPiped(argument))]
}

let stdin: Promise<string> | undefined

/** Stdin is read once, even if the command is tried again. The final line break is not part of the value. */
async function pipedInput(fields: readonly Field[], argument: string): Promise<JsonObject> {
  const name = argument.slice(0, -3)
  const field = fields.find(each => each.name === name)
  stdin ??= Bun.stdin.text()
  const text = (await stdin).replace(/\r?\n$/, '')
  return field?.type === 'string' ? { [name]: text } : inputsFromArguments(fields, [`${name}=${text}`])
}

async function readJsonFile(path: string): Promise<JsonObject> {
  const file = Bun.file(path)
  if (!(await file.exists())) throw new CadreError('invalid_request', `--inputs: there is no file ${path}`)
  const wrong = (why: string) => new CadreError('invalid_request', `--inputs: ${path} ${why}`)
  try {
    const value = JSON.parse(await file.text())
    if (isObject(value)) return value as JsonObject
  } catch (error) {
    throw wrong(`is not JSON: ${(error as Error).message}`)
  }
  throw wrong('must hold a JSON object: input names and their values')
}
