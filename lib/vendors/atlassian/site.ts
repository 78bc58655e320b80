// Calls to an Atlassian site with an account's API token.
// https://developer.atlassian.com/cloud/jira/platform/basic-auth-for-rest-apis/

import type { AgentContext } from '../../agent/agent-context.ts'
import { basicAuth, type Call, jsonApi } from '../../agent/json-api.ts'
import type { ApiOptions } from '../../agent/net/requests.ts'
import type { JsonObject } from '../../json.ts'
import { type AtlassianSettings, apiAddress, isGateway, type Product, tokenOf } from './settings.ts'

export type AtlassianContext = AgentContext<AtlassianSettings>

/** The address that precedes the paths of the API: that of the site, or of the gateway. */
export function siteOf({ settings }: AtlassianContext): string {
  return apiAddress(settings)
}

/** Calls the API of a product with the account's token. */
export function atlassian(product: Product, context: AtlassianContext) {
  const call = jsonApi(context, atlassianApi(context))
  const unauthorized = refusedToken(product, context)
  return <T = JsonObject>(doing: string, path: string, options: Call = {}): Promise<T> =>
    call<T>(doing, path, { ...options, hints: { 401: unauthorized, ...options.hints } })
}

/** The API with the account's token. */
export function atlassianApi(context: AtlassianContext): ApiOptions {
  return { setting: 'api_token', base: siteOf(context), headers: signed(context) }
}

/** The header with the credential. */
export function signed(context: AtlassianContext): Record<string, string> {
  const token = tokenOf(context.settings)
  context.conceal(token)
  return { authorization: basicAuth(context.settings.email.trim(), token) }
}

/** What to do about 401: a token with scopes is refused at the site, and a token without them at the gateway. */
export function refusedToken(product: Product, context: AtlassianContext): string {
  const { agent } = context
  const again = `the credential was refused or has expired: set agents.${agent}.api_token again`
  if (isGateway(context.settings)) {
    return `${again}; a token without scopes needs agents.${agent}.base_url to be the address of the site`
  }
  const gateway = `https://api.atlassian.com/ex/${product}/<cloud id>`
  return `${again}; a token with scopes needs agents.${agent}.base_url to be ${gateway}, with the cloud id that ${siteOf(context)}/_edge/tenant_info shows`
}
