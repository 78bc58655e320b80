// What the options of `add` and `update` say of a trigger, as the calls take it.

import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Static } from 'typebox'
import { CadreError } from '../../../error.ts'
import type { JsonObject } from '../../../json.ts'
import type { Field } from '../../../team/team.ts'
import type { AddTrigger } from '../../../wire/calls/triggers.ts'
import { workspaceOf } from '../backend/named-workspace.ts'
import type { TriggerPlace } from '../backend/trigger-place.ts'
import { readInputs } from '../kit/inputs.ts'
import type { AtMost } from '../kit/options.ts'
import { typedSecret } from '../kit/typed-secret.ts'

export type NewTrigger = Static<(typeof AddTrigger)['body']>

/** The options as commander reads them. An empty text removes what a trigger may be without. */
export interface SpecOptions {
  cron?: string
  every?: string
  at?: string
  from?: string
  tz?: string
  input?: string[]
  inputs?: string
  when?: string
  overlap?: NewTrigger['overlap']
  catchUp?: NewTrigger['catch_up']
  window?: string
  max?: number
  lateAfter?: string
  jitter?: string
  queueMax?: number
  atMost?: AtMost | ''
  workspace?: string
  env?: string
  runName?: string
  scheme?: NewTrigger['scheme']
  header?: string
  algorithm?: NewTrigger['algorithm']
  encoding?: NewTrigger['encoding']
  prefix?: string
  payload?: string
  key?: NewTrigger['key']
  timestampHeader?: string
  unit?: NewTrigger['unit']
  idHeader?: string
  tolerance?: string
  dedup?: string
  maxBytes?: number
  keepDays?: number
  keepBody?: number
  reply?: NewTrigger['reply']
  after?: string
  on?: NewTrigger['on']
  again?: boolean
  folder?: string
  match?: string[]
  ignore?: string[]
  depth?: number
  settle?: string
  batch?: string
  poll?: string
  initial?: boolean
  identity?: NewTrigger['identity']
  claim?: boolean
}

/** The properties of a body, but for the inputs. */
export async function specOf(
  options: SpecOptions,
  { home, hub }: Pick<TriggerPlace, 'home' | 'hub'>,
): Promise<Omit<NewTrigger, 'name' | 'kind' | 'team' | 'inputs' | 'secret'>> {
  const { cron, every, at, from, tz, overlap, catchUp, window, max, lateAfter, jitter, queueMax } = options
  const { when, atMost, workspace, env, runName, after, on, again } = options
  const given = {
    ...hookOf(options),
    ...watchOf(options),
    ...{ after, on, again },
    ...{ cron, every, at, from, tz, overlap, catch_up: catchUp, window, max, late_after: lateAfter, jitter },
    ...{ queue_max: queueMax, at_most: orNull(atMost), when: orNull(when), run_name: orNull(runName) },
    environment: orNull(env),
    // In a realm it is a name.
    workspace: !hub && workspace ? (await workspaceOf(workspace, home)).reference : orNull(workspace),
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

function hookOf(options: SpecOptions) {
  const { scheme, header, algorithm, encoding, prefix, payload, key, unit, tolerance, dedup, reply } = options
  const { timestampHeader, idHeader, maxBytes, keepDays, keepBody } = options
  return {
    ...{ scheme, header, algorithm, encoding, prefix, payload, key, unit, tolerance, dedup, reply },
    ...{ timestamp_header: timestampHeader, id_header: idHeader },
    ...{ max_bytes: maxBytes, keep_days: keepDays, keep_body: keepBody },
  }
}

function watchOf({ folder, match, ignore, depth, settle, batch, poll, initial, identity, claim }: SpecOptions) {
  return {
    ...{ match, ignore, depth, settle, batch: orNull(batch), poll, initial, identity, claim },
    folder: folder === undefined || folder.startsWith('~') ? folder : resolve(folder),
  }
}

/** The secret after an option: `-` is read from stdin or typed, and `@file` from a file, because shells keep what is written. */
export async function secretOf(option: string, given: string): Promise<string> {
  if (given === '-') return (await typedSecret('secret of the hook: ')).trim()
  if (given.startsWith('@')) return (await readFile(given.slice(1), 'utf8')).replace(/\r?\n$/, '')
  throw new CadreError('invalid_request', `${option}: write -, and give the secret on stdin, or @FILE`)
}

const orNull = <T>(given: T): Exclude<T, ''> | null => (given === '' ? null : (given as Exclude<T, ''>))

/**
 * The given inputs. A value with `{{ }}` is a template, which each occasion fills in, so it stays a text; others are read
 * by the type of the input, and a file is named by its whole path.
 */
export async function inputsOf(fields: readonly Field[], options: SpecOptions): Promise<JsonObject> {
  const isTemplate = (argument: string) => textAfter(argument).includes('{{') && !isJson(textAfter(argument))
  const { input = [], inputs } = options
  const templates = input.filter(isTemplate).map(argument => {
    const at = argument.indexOf('=')
    if (at < 1) throw new CadreError('invalid_request', `-i ${argument}: expected name=value or name=@file`)
    return [argument.slice(0, at), argument.slice(at + 1)] as const
  })
  const others = input.filter(argument => !isTemplate(argument))
  const read = await readInputs(fields, { input: others, ...(inputs !== undefined && { inputs }) })
  for (const { name, type } of fields) {
    const path = read[name]
    if (type === 'file' && typeof path === 'string' && !path.includes('{{')) read[name] = resolve(path)
  }
  return { ...read, ...Object.fromEntries(templates) }
}

const textAfter = (argument: string): string => argument.slice(argument.indexOf('=') + 1)

/** A list or an object whose parts may be templates. */
function isJson(text: string): boolean {
  if (!/^\s*[[{]/.test(text) || /^\s*\{\{/.test(text)) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
