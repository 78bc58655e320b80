// Which packages may send requests of http in the name of an agent (`account: crm`), by the setting `agents.crm.lend`: a
// list of names, such as ["@acme/*"]. A team that was started from a path on this machine needs no leave. Pure.

import { type AgentDefinition, LEND } from '../agent/define.ts'
import type { Json, JsonObject } from '../json.ts'
import { commandLine } from '../program/called-as.ts'
import { fits, type SecretReader } from './named.ts'
import { valueAt } from './tree.ts'

/** A team and the agents in whose name it sends requests. */
export interface Borrower extends SecretReader {
  accounts: readonly string[]
}

const PACKAGES = /^@[a-z0-9*-]+\/[a-z0-9*-]+$/

/** Whether the key below an agent is the list, which only agents with an account have. */
export const isLend = (path: readonly string[], definition: Pick<AgentDefinition, 'account'> | undefined): boolean =>
  definition?.account !== undefined && path.length === 1 && path[0] === LEND

/** The problem with the value of the list; null if there is none. */
export function lendProblem(value: Json): string | null {
  const isList = Array.isArray(value) && value.every(each => typeof each === 'string' && PACKAGES.test(each))
  return isList ? null : 'must be a list of names of packages, such as ["@acme/sync"] or ["@acme/*"]'
}

/** The packages that the list names. One of another form, or that refers to something, names none. */
export function lentTo(raw: JsonObject, reference: string): string[] {
  const list = valueAt(raw, ['agents', reference, LEND]) ?? []
  return lendProblem(list) === null ? (list as string[]) : []
}

/**
 * Why a team may send no requests in the name of an agent, and what to do about it; null when it may. `raw` has unresolved
 * references. `key` is where the list stands, or would stand, in settings.yml.
 */
export function whyNotLent(
  raw: JsonObject,
  reference: string,
  { name, fromPath }: SecretReader,
  key: string,
): string | null {
  const packages = lentTo(raw, reference)
  if (fromPath || packages.some(pattern => fits(pattern, name))) return null
  const set = commandLine('settings', 'set', key, JSON.stringify([...packages, name]))
  return `the package ${name} may not send requests in the name of the agent ${reference} (\`account: ${reference}\`); to allow it any request with this credential, call: ${set}`
}
