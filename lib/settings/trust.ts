// Whose packages a daemon runs, by the setting `packages.trust`: a list of scopes (`@acme`) and public keys
// (`ed25519:…`). A package passes when its scope is listed, or when a listed key signed its name, version and files.
// Without the setting every package of the hub passes; with a setting that cannot be read none does. Pure.

import { isObject, type Json, type JsonObject } from '../json.ts'
import { commandLine } from '../program/called-as.ts'
import { isPublicKey } from '../program/signing-key.ts'
import { listed } from '../text/spelling.ts'
import { type SignedPackage, verifyPackage } from '../wire/records/package-signature.ts'
import type { PackageSignature } from '../wire/records/packages.ts'

const SCOPE = /^@[a-z0-9][a-z0-9-]{0,62}$/
/** Entries that a message names. */
const MOST_NAMED = 5

/** The problem with a value of `packages.trust`; null if there is none. */
export function trustProblem(value: Json): string | null {
  const isEntry = (entry: Json) => typeof entry === 'string' && (SCOPE.test(entry) || isPublicKey(entry))
  if (!Array.isArray(value)) return 'must be a list of scopes ("@acme") and public keys ("ed25519:…")'
  const wrong = value.find(entry => !isEntry(entry))
  return wrong === undefined
    ? null
    : `${JSON.stringify(wrong)} must be a scope ("@acme") or a public key ("ed25519:…"), as \`${commandLine('keys')}\` prints it`
}

/** `packages.trust` of a settings.yml; undefined when it is not set. */
export function trustIn(raw: JsonObject): Json | undefined {
  // A list in the wrong place, under a misspelt name, or one that refers to something, must not count as none.
  const section = raw.packages ?? {}
  if (!isObject(section)) return null
  const { sandbox: _, ...rest } = section as JsonObject
  return Object.keys(rest).length === 0 ? undefined : (rest.trust ?? null)
}

/** Whether packages of this name pass whoever signed them. */
export function trustsName(trust: Json | undefined, name: string): boolean {
  return trust === undefined || entriesOf(trust).includes(scopeOf(name))
}

/** Why the package does not pass, and what to do about it; null when it does. */
export function whyUntrusted(
  trust: Json | undefined,
  found: SignedPackage,
  signature: PackageSignature | null,
): string | null {
  if (trustsName(trust, found.name)) return null
  const id = `${found.name}@${found.version}`
  const problem = trustProblem(trust!)
  if (problem !== null) return `${id} is not run: packages.trust in settings.yml ${problem}`
  const entries = entriesOf(trust!)
  const keys = entries.filter(isPublicKey)
  const expected = `packages.trust of this daemon lists ${entries.length === 0 ? 'nothing' : named(entries)}`
  const allow = (entry: string) =>
    `call: ${commandLine('settings', 'set', 'packages.trust', JSON.stringify([...entries, entry]))}`
  const allowScope = `to run whatever the hub gives of its scope, ${allow(scopeOf(found.name))}`
  if (keys.length === 0) return `${id} is of no trusted scope: ${expected}; ${allowScope}`
  if (!signature) {
    return `${id} is not signed: ${expected}; have a new version published with one of these keys, or, ${allowScope}`
  }
  const { key } = signature
  if (!keys.includes(key)) {
    const by = isPublicKey(key) ? key : 'no key'
    const add = isPublicKey(key) ? `; if you know from its publisher that this is the right key, ${allow(key)}` : ''
    return `${id} is signed with ${by}: ${expected}${add}`
  }
  if (verifyPackage(found, signature)) return null
  return `${id} is not what ${key} signed: its name, version or files were changed, or the signature was; ask its publisher, and those who run the hub`
}

function named(entries: readonly string[]): string {
  const more = entries.length - MOST_NAMED
  return more > 0 ? `${entries.slice(0, MOST_NAMED).join(', ')} and ${more} more` : listed(entries)
}

const entriesOf = (trust: Json): string[] =>
  Array.isArray(trust) && trustProblem(trust) === null ? trust.map(String) : []

const scopeOf = (name: string): string => name.split('/', 1)[0]!
