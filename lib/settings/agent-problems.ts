// The problems of an agent's settings that its schema cannot find: those that the agent's own `check` names, and
// credentials that would be sent unencrypted. Pure, except that a `check` may look at local files.

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
 * do not fit the schema. Neither these nor unresolved references are checked.
 */
export function agentProblems(
  definition: AgentDefinition,
  settings: JsonObject,
  faulty: readonly string[],
): (Detail & { message: MaskedText })[] {
  const given = withoutFaulty(settings, new Set(faulty))
  const secrets = leavesOf(given).filter(({ path }) => isSecretAt(definition, path))
  const redactor = createRedactor(secrets.map(({ value }) => `${value}`))
  return [...unencryptedAddresses(given, secrets[0]?.path), ...problemsByCheck(definition, given)].map(
    ({ path, message }) => ({
      path,
      message: redactor.text(message),
    }),
  )
}

function problemsByCheck(definition: AgentDefinition, given: JsonObject): Detail[] {
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
function unencryptedAddresses(given: JsonObject, secret: string[] | undefined): Detail[] {
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
function withoutFaulty(settings: JsonObject, faulty: ReadonlySet<string>, at = ''): JsonObject {
  const entries = Object.entries(settings).flatMap(([key, value]) => {
    const path = `${at}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (faulty.has(path) || (typeof value === 'string' && isReference(value))) return []
    return [[key, isObject(value) ? withoutFaulty(value as JsonObject, faulty, path) : value] as const]
  })
  return Object.fromEntries(entries)
}
