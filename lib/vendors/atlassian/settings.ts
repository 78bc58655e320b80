// The settings of an Atlassian site as people write them: an address that was copied from the browser is understood, and
// what cannot be right is answered with what to write instead. Pure.
//
// A token without scopes is used at the site itself. A token with scopes is accepted only at Atlassian's gateway,
// `https://api.atlassian.com/ex/jira/<cloud id>`, whose addresses people cannot open.
// https://support.atlassian.com/atlassian-account/docs/manage-api-tokens-for-your-atlassian-account/

import { secret } from '../../agent/define.ts'
import { Type } from '../../schema/type.ts'

export const AtlassianSettings = Type.Object({
  base_url: Type.String({
    minLength: 1,
    description: 'The address of the site, such as https://acme.atlassian.net, also as copied from the browser.',
  }),
  email: Type.String({ minLength: 1, description: 'The e-mail address of the account that the token belongs to.' }),
  api_token: secret({
    description: 'An API token of the account (id.atlassian.com → Security → API tokens).',
  }),
})
export type AtlassianSettings = Type.Static<typeof AtlassianSettings>
type Settings = AtlassianSettings
export type Product = 'jira' | 'confluence'

/** The hosts on which Atlassian serves sites. They are known to have no paths of their own, and to speak TLS. */
const CLOUD = /\.(atlassian\.net|jira\.com)$/
const GATEWAY = /^\/ex\/(jira|confluence)\/[^/]+/
/** Where the address of a page begins, for sites on other hosts. */
const PAGE = /\/(wiki|browse|issues|secure|jira\/[a-z-]+)(\/.*)?$/

/** The address as a URL. The scheme may be missing. */
function addressOf(text: string): URL | null {
  return URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`)
}

/** The address that precedes the paths of the API: that of the site, or of the gateway. */
export function apiAddress({ base_url }: Settings): string {
  const url = addressOf(base_url.trim())!
  const gateway = GATEWAY.exec(url.pathname)
  if (gateway) return url.origin + gateway[0]
  if (CLOUD.test(url.hostname)) return `https://${url.host}`
  return url.origin + url.pathname.replace(PAGE, '').replace(/\/+$/, '')
}

/** Whether the address is that of the gateway, which is not an address for people. */
export function isGateway(settings: Settings): boolean {
  return GATEWAY.test(new URL(apiAddress(settings)).pathname)
}

/** A token has no blanks; they come from copying it out of a narrow window, or from the end of a file. */
export function tokenOf({ api_token }: Settings): string {
  return api_token.replace(/\s+/g, '')
}

/** What is wrong with the settings, in words that continue the key, with what to write instead. */
export function problemsOfSite(
  product: Product,
  { base_url, email, api_token }: { [K in keyof Settings]?: Settings[K] | undefined },
): Record<string, string> {
  const problems = {
    base_url: base_url === undefined ? null : problemOfAddress(product, base_url.trim()),
    email: email === undefined ? null : problemOfEmail(email.trim()),
    api_token: api_token === undefined ? null : problemOfToken(api_token.trim()),
  }
  return Object.fromEntries(Object.entries(problems).flatMap(([key, words]) => (words ? [[key, words]] : [])))
}

function problemOfAddress(product: Product, text: string): string | null {
  const url = addressOf(text)
  if (/^[a-z0-9-]+$/i.test(text) && text !== 'localhost') {
    return `must be the whole address of the site: write https://${text.toLowerCase()}.atlassian.net`
  }
  if (!url?.hostname || !/^https?:$/.test(url.protocol)) {
    return 'must be the address of the site: write it as https://acme.atlassian.net'
  }
  const given = GATEWAY.exec(url.pathname)
  if (given && given[1] !== product) {
    return `is the address for ${given[1] === 'jira' ? 'Jira' : 'Confluence'}: write ${url.origin}${given[0].replace(given[1]!, product)}`
  }
  if (given || !/(^|\.)atlassian\.com$/.test(url.hostname)) return null
  return url.hostname === 'api.atlassian.com'
    ? `must name the site: write https://api.atlassian.com/ex/${product}/<cloud id>, with the cloud id that the address of your site shows with /_edge/tenant_info behind it`
    : `is a page of Atlassian's own: write the address of your site, such as https://acme.atlassian.net`
}

function problemOfEmail(text: string): string | null {
  if (/^[^\s@/]+@[^\s@/]+$/.test(text)) return null
  const [, address] = /^([^\s@/]+@[^\s@/]+)\/token$/.exec(text) ?? []
  return `must be the e-mail address of the account: write ${address ?? 'it as me@acme.com'}`
}

function problemOfToken(text: string): string | null {
  if (/^(Basic|Bearer)\s/i.test(text)) return `must be the token alone: write it without ${text.split(/\s/)[0]}`
  if (/^[^\s@:]+@[^\s@:]+:/.test(text))
    return 'must be the token alone: write it without the e-mail address and the colon'
  return null
}
