// The secrets that the environment of a process holds, found by the names of the variables and the forms of their values.

import { keyValues } from '../key-values.ts'
import type { KnownSecret } from './redact.ts'
import { credentialsIn } from './secret-forms.ts'

/** Shorter values cannot be masked. No credential of cadre is that short. */
const SHORTEST = 6

const CREDENTIAL = /(token|password|passwd|passphrase|secret|credential|(^|_)key)s?$/i
/** A long text of letters and digits without a space, which is typical of credentials and not of words. */
const OPAQUE = /^(?=.*\d)(?=.*[a-z])\S{16,}$/i
const EXPORT_HEADERS = /^OTEL_EXPORTER_OTLP_(\w+_)?HEADERS$/

/** Whether a name suggests a credential. */
export function soundsSecret(name: string): boolean {
  return CREDENTIAL.test(name)
}

/** Whether a value that nothing describes should be masked in logs and results. */
export function looksSecret(value: unknown): boolean {
  return typeof value === 'string' && OPAQUE.test(value)
}

export function environmentSecrets(env: Record<string, string | undefined>): KnownSecret[] {
  return Object.entries(env).flatMap(([name, value]) => (value ? inVariable(name, value) : []))
}

/**
 * Cadre's own credentials are always secrets. Other variables belong to the machine and may hold ordinary words, so
 * only those count that are named like a credential and look like one, and the passwords in addresses.
 */
function inVariable(name: string, value: string): KnownSecret[] {
  if (EXPORT_HEADERS.test(name)) {
    const values = Object.values(keyValues(value)).filter(text => text.length >= SHORTEST)
    return values.map(text => ({ name, value: text }))
  }
  const isCredential = soundsSecret(name) && !/PUBLIC/i.test(name) && value.length >= SHORTEST
  if (isCredential && (name.startsWith('CADRE_') || looksSecret(value))) return [{ name, value }]
  return credentialsIn(value).length > 0 ? [{ name, value }] : []
}
