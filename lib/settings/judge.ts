// What is wrong with an agent's settings although each has the form of its schema: what the agent itself finds, and
// credentials that would travel unencrypted. Pure, except that an agent's `check` may look at local files.

import type { AgentDefinition } from '../agent/define.ts'
import { isLoopback } from '../agent/net/address.ts'
import type { Detail } from '../error.ts'
import { messageOf } from '../error.ts'
import { isObject, type JsonObject } from '../json.ts'
import type { MaskedText } from '../secrets/masked.ts'
import { createRedactor } from '../secrets/redact.ts'
import { isReference } from './references.ts'
import { leavesOf, secretKind } from './tree.ts'

/**
 * The problems by dotted key below the agent, in words that continue the key. `faulty` are JSON pointers of values that
 * do not fit the schema; these and unresolved references are not judged.
 */
export function verdicts(
  definition: AgentDefinition,
  settings: JsonObject,
  faulty: readonly string[],
): (Detail & { message: MaskedText })[] {
  const given = sound(settings, new Set(faulty))
  const secrets = leavesOf(given).filter(({ path }) => isSecretAt(definition, path))
  const redactor = createRedactor(secrets.map(({ value }) => `${value}`))
  return [...inTheClear(given, secrets[0]?.path), ...own(definition, given)].map(({ path, message }) => ({
    path,
    message: redactor.text(message),
  }))
}

function own(definition: AgentDefinition, given: JsonObject): Detail[] {
  try {
    return Object.entries(definition.check?.(given) ?? {}).flatMap(([path, message]) =>
      message ? [{ path, message }] : [],
    )
  } catch (error) {
    const [first = ''] = Object.keys(definition.settings.properties)
    return [{ path: first, message: `could not be checked, because the agent's check failed: ${messageOf(error)}` }]
  }
}

/** Addresses with `http://` outside this machine, although the settings contain a credential. */
function inTheClear(given: JsonObject, secret: string[] | undefined): Detail[] {
  if (!secret) return []
  return leavesOf(given).flatMap(({ path, value }) => {
    if (typeof value !== 'string' || !/^http:/i.test(value) || !URL.canParse(value)) return []
    const url = new URL(value)
    if (isLoopback(url.hostname)) return []
    const shown =
      path.join('.') === secret.join('.') ? 'https://…' : `https://${url.host}${url.pathname.replace(/\/$/, '')}`
    const message = `must begin with https://, because http:// shows ${secret.join('.')} to everybody on the way: write ${shown}`
    return [{ path: path.join('.'), message }]
  })
}

function isSecretAt(definition: AgentDefinition, path: string[]): boolean {
  return secretKind(['agents', 'agent', ...path], { get: () => definition }) === 'value'
}

/** The settings without faulty values and references. */
function sound(settings: JsonObject, faulty: ReadonlySet<string>, at = ''): JsonObject {
  const entries = Object.entries(settings).flatMap(([key, value]) => {
    const path = `${at}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (faulty.has(path) || (typeof value === 'string' && isReference(value))) return []
    return [[key, isObject(value) ? sound(value as JsonObject, faulty, path) : value] as const]
  })
  return Object.fromEntries(entries)
}
