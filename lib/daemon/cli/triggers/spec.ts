// What the options of `add` and `update` say of a trigger, as the calls take it.

import { resolve } from 'node:path'
import type { Static } from 'typebox'
import { CadreError } from '../../../error.ts'
import type { JsonObject } from '../../../json.ts'
import type { Field } from '../../../team/team.ts'
import type { AddTrigger } from '../../../wire/calls/triggers.ts'
import { readInputs } from '../kit/inputs.ts'
import type { AtMost } from '../kit/options.ts'

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
  runName?: string
}

/** The properties of a body, but for the inputs. */
export function specOf(options: SpecOptions): Omit<NewTrigger, 'name' | 'kind' | 'team' | 'inputs'> {
  const { cron, every, at, from, tz, overlap, catchUp, window, max, lateAfter, jitter, queueMax } = options
  const { when, atMost, workspace, runName } = options
  const given = {
    ...{ cron, every, at, from, tz, overlap, catch_up: catchUp, window, max, late_after: lateAfter, jitter },
    ...{ queue_max: queueMax, at_most: orNull(atMost), when: orNull(when), run_name: orNull(runName) },
    workspace: workspace && /^\.{1,2}$|\//.test(workspace) ? resolve(workspace) : orNull(workspace),
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
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
