// What Jira and Confluence ask of every request, beyond their documents.

import { ACCOUNT } from '../../vendors/atlassian.ts'
import { at, basicOf, type Call } from '../recorder.ts'

export { ACCOUNT }

/** Both answer to nobody too, with what anybody may see: a credential that is missing goes unnoticed. */
export function isSigned(call: Call): boolean {
  return basicOf(call) === `${ACCOUNT.email}:${ACCOUNT.api_token}`
}

/** Whether a value has the outline of the Atlassian document format. */
export function isDocument(value: unknown): boolean {
  const content = at(value, 'content')
  const isNode = (node: unknown): boolean => {
    const inner = at(node, 'content') ?? []
    return typeof at(node, 'type') === 'string' && Array.isArray(inner) && inner.every(isNode)
  }
  return at(value, 'type') === 'doc' && at(value, 'version') === 1 && Array.isArray(content) && content.every(isNode)
}
