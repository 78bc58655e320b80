// What the commands of `${cmd:…}` references see of the daemon's environment: PATH, HOME and LANG, and the variables
// that `references.env` in settings.yml lists, such as the token of a password manager. Pure.

import type { Json } from '../json.ts'
import { soundsSecret } from '../secrets/environment-secrets.ts'
import type { KnownSecret } from '../secrets/redact.ts'

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** The problem with a value of `references.env`; null if there is none. */
export function environmentProblem(value: Json): string | null {
  if (Array.isArray(value) && value.every(name => typeof name === 'string' && NAME.test(name))) return null
  return 'must be a list of names of environment variables, such as [OP_SERVICE_ACCOUNT_TOKEN]'
}

/** The names in `references.env`. A value with a problem, which the start names, gives none. */
export const environmentNames = (value: Json | undefined): string[] =>
  value === undefined || environmentProblem(value) !== null ? [] : (value as string[])

/** The variables of these names that are set. */
export const variablesOf = (names: readonly string[], env: Readonly<Record<string, string | undefined>>) =>
  Object.fromEntries(names.flatMap(name => (env[name] ? [[name, env[name]]] : []))) as Record<string, string>

/** Those of them that are to be masked. Addresses, regions and names of profiles are not. */
export const secretVariables = (variables: Readonly<Record<string, string>>): KnownSecret[] =>
  Object.entries(variables).flatMap(([name, value]) =>
    soundsSecret(name) || /session$/i.test(name) ? { name: `the variable ${name}`, value } : [],
  )
