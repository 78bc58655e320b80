// What the fakes of Jira and Confluence share: the account, its credential, and how they refuse.

import { refusal, type VendorRequest } from '../../lib/testing/fake-vendor.ts'

export const ACCOUNT = { email: 'ada@acme.test', api_token: 'canary-atlassian-token' }
export const SIGNED = `Basic ${btoa(`${ACCOUNT.email}:${ACCOUNT.api_token}`)}`

export function isSigned({ headers }: VendorRequest): boolean {
  return headers.get('authorization') === SIGNED
}

/** Both answer JSON only to those who say that they take it, and read a body only when it says what it is. */
export function refusedForm({ method, headers }: VendorRequest): Response | null {
  if (!headers.get('accept')?.includes('application/json')) return refusal(406)
  const writes = method === 'POST' || method === 'PUT'
  return writes && headers.get('content-type') !== 'application/json' ? refusal(415) : null
}
