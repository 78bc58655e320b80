// Shared by the agents of Atlassian's clouds: the settings of a site, and calls with an account's API token.
// https://developer.atlassian.com/cloud/jira/platform/basic-auth-for-rest-apis/

import { type AgentContext, secret } from '../../agent/define.ts'
import { basicAuth, jsonApi } from '../../agent/json-api.ts'
import { Type } from '../../type.ts'

export const AtlassianSettings = Type.Object({
  base_url: Type.String({
    pattern: '^https?://[^/]',
    description: 'The site, such as https://acme.atlassian.net; a trailing /wiki is accepted.',
  }),
  email: Type.String({ minLength: 3, description: 'The e-mail address of the account that the token belongs to.' }),
  api_token: secret(),
})

export type AtlassianContext = AgentContext<Type.Static<typeof AtlassianSettings>>

/** The address of the site without a path. */
export function siteOf({ settings }: AtlassianContext): string {
  return settings.base_url.replace(/\/+$/, '').replace(/\/wiki$/, '')
}

export function atlassian(context: AtlassianContext) {
  const { email, api_token } = context.settings
  const headers = { authorization: basicAuth(email, api_token) }
  return jsonApi(context, { setting: 'api_token', base: siteOf(context), headers })
}
