// The inputs of a run as the command line gives them: `--inputs file.json`, then `-i name=value`, which win.

import { CadreError } from '../../error.ts'
import { isObject, type JsonObject } from '../../json.ts'
import type { Field } from '../../team/team.ts'
import { inputsFromArguments } from '../../team/team.ts'

export interface InputOptions {
  input?: string[]
  inputs?: string
}

export async function readInputs(fields: readonly Field[], { input = [], inputs }: InputOptions): Promise<JsonObject> {
  const given = inputs === undefined ? {} : await readJsonFile(inputs)
  return { ...given, ...(await inputsFromArguments(fields, input)) }
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
