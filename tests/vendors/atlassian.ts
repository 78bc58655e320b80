// What the fakes of Jira and Confluence share: the account, its credential, and how they refuse.

import { refusal, type VendorRequest } from '../../lib/testing/fake-vendor.ts'

export const ACCOUNT = { email: 'ada@acme.test', api_token: 'canary-atlassian-token' }
export const SIGNED = `Basic ${btoa(`${ACCOUNT.email}:${ACCOUNT.api_token}`)}`

export function isSigned({ headers }: VendorRequest): boolean {
  return headers.get('authorization') === SIGNED
}

/** Both answer JSON only to those who say that they take it, and read a body only when it says what it is. */
export function refusedForm({ method, headers }: VendorRequest): Response | null {
  const accept = headers.get('accept') ?? ''
  if (!accept.includes('application/json') && accept !== '*/*') return refusal(406)
  const writes = method === 'POST' || method === 'PUT'
  const type = headers.get('content-type') ?? ''
  return writes && type !== 'application/json' && !type.startsWith('multipart/form-data;') ? refusal(415) : null
}

/** The file of a form, and the comment beside it; null if the body is no form with a file. Files are texts here. */
export async function formOf({ headers, body }: VendorRequest) {
  const type = headers.get('content-type') ?? ''
  if (!type.startsWith('multipart/form-data;')) return null
  const form = await new Response(String(body), { headers: { 'content-type': type } }).formData()
  const file = form.get('file')
  if (!(file instanceof Blob)) return null
  return { filename: (file as File).name, content: await file.text(), comment: `${form.get('comment') ?? ''}` }
}
