// The quotas of realms that have none of their own, as the operator of the hub sets them.

import { CadreError } from '../../error.ts'
import { QUOTAS, type Quota, type QuotaValues } from '../../wire/records/quotas.ts'

const NAMES = Object.keys(QUOTAS) as Quota[]

/** `CADRE_QUOTA_WAITING` and so on; null where nothing is set. Throws `invalid_request`. */
export function siteQuotas(env: Record<string, string | undefined>): QuotaValues {
  return valuesBy(name => {
    const variable = `CADRE_QUOTA_${name.toUpperCase()}`
    const text = env[variable]
    if (!text) return null
    const value = Number(text)
    if (/^[0-9]+$/.test(text) && Number.isSafeInteger(value)) return value
    throw new CadreError('invalid_request', `${variable}: expected a whole number, got ${text}`)
  })
}

/** A value for each quota. */
export function valuesBy(of: (name: Quota) => number | null): QuotaValues {
  return Object.fromEntries(NAMES.map(name => [name, of(name)])) as QuotaValues
}
