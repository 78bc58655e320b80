// Pull requests on Bitbucket Cloud.
// https://developer.atlassian.com/cloud/bitbucket/rest/api-group-pullrequests/

import type { Static } from 'typebox'
import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { basicAuth, jsonApi, lacking, pathSegment } from '../../agent/json-api.ts'
import { pagesOf } from '../../agent/listing.ts'
import { Type } from '../../schema/type.ts'
import { apiRoot, type CodeHost, type PullRequest, type Roots, repositoriesOf, type Wishes } from './code-host.ts'

export interface BitbucketAccount {
  email?: string
  api_token?: string
  workspace?: string
  base_branch?: string
  push_to?: string
  base_url?: string
}

const Pull = Type.Object({
  id: Type.Integer(),
  links: Type.Object({ html: Type.Object({ href: Type.String({ minLength: 1 }) }) }),
  source: Type.Object({
    branch: Type.Object({ name: Type.String() }),
    commit: Type.Optional(Type.Union([Type.Object({ hash: Type.String() }), Type.Null()])),
    repository: Type.Optional(Type.Union([Type.Object({ full_name: Type.String() }), Type.Null()])),
  }),
})
type Pull = Static<typeof Pull>
const Pulls = Type.Object({ values: Type.Array(Pull), next: Type.Optional(Type.String()) })
const User = Type.Object({ display_name: Type.String() })
const Values = Type.Object({ values: Type.Array(Type.Unknown()) })
const CLOUD = 'https://api.bitbucket.org/2.0'
export const BITBUCKET_ROOTS: Roots = {
  known: { 'https://bitbucket.org': CLOUD, 'https://api.bitbucket.org': CLOUD, [CLOUD]: CLOUD },
  path: '/2.0',
}

/** The API with the token of `account`, which comes from the setting `<provider>.api_token`. */
export function bitbucketApi(provider: string, { email = '', api_token = '', base_url = CLOUD }: BitbucketAccount) {
  const headers = { authorization: basicAuth(email, api_token) }
  return { setting: `${provider}.api_token`, base: apiRoot(base_url, BITBUCKET_ROOTS)!, headers }
}

/**
 * A code host for Bitbucket. The token of `account` comes from the setting `<provider>.api_token`. Throws an AgentError
 * when labels are given, because Bitbucket has none.
 */
export function bitbucketHost(
  context: AgentContext<unknown>,
  provider: string,
  account: BitbucketAccount,
  { reviewers, labels }: Wishes,
): CodeHost {
  if (labels.length > 0) {
    const options = { code: 'invalid_request', hint: 'leave out `labels`', sent: 'no' } as const
    throw new AgentError(`[${context.callName}] Bitbucket does not support labels`, options)
  }
  const { api_token = '', base_branch } = account
  // The address in the browser is accepted, too.
  const workspace = (account.workspace ?? '').replace(/^https:\/\/bitbucket\.org\//, '').replace(/\/.*$/, '')
  const api = bitbucketApi(provider, account)
  const { base, setting } = api
  const call = jsonApi(context, api)
  const scope = 'write:pullrequest:bitbucket'
  const pathOf = (repo: string) => `/repositories/${pathSegment(workspace)}/${pathSegment(repo)}/pullrequests`
  const hintsOf = (repo: string) => ({
    404: `check that ${workspace}/${repo} exists, and that agents.${context.agent}.${provider}.workspace and the token are right`,
  })
  /** The repository that has the branch: that of the workspace, or a fork, which has another owner or name. */
  const fullNameOf = (repo: string, target: { owner: string; repo: string }) =>
    account.push_to === undefined ? `${workspace}/${repo}` : `${target.owner}/${target.repo}`
  const pullOf = ({ id, links, source }: Pull): PullRequest => {
    return { number: id, url: links.html.href, commit: source.commit?.hash ?? '', reviewers: [] }
  }
  return {
    host: repositoriesOf(base),
    login: { user: 'x-bitbucket-api-token-auth', password: api_token, setting },
    remote: 'origin',
    pushTo: account.push_to,
    base: base_branch,
    draft: false,
    async find({ repo, branch, target }) {
      const pages = pagesOf(async (query = '?state=OPEN') => {
        const reply = call<Static<typeof Pulls>>(`list pull requests of ${workspace}/${repo}`, pathOf(repo) + query, {
          scope: 'read:pullrequest:bitbucket',
          hints: hintsOf(repo),
          reply: Pulls,
        })
        const { values, next } = await reply
        return { items: values, next: next && URL.parse(next)?.search }
      })
      const own = fullNameOf(repo, target)
      const mine = ({ source }: Pull) =>
        source.branch.name === branch && (source.repository?.full_name ?? own).toLowerCase() === own.toLowerCase()
      const found: PullRequest[] = []
      for await (const { items } of pages) found.push(...items.filter(mine).map(pullOf))
      return found.toSorted((a, b) => a.number - b.number)
    },
    async open({ repo, branch, base, target }, { title, body, draft }) {
      const people = reviewers.map(name => (name.startsWith('{') ? { uuid: name } : { account_id: name }))
      const from = fullNameOf(repo, target)
      const pull = {
        title,
        description: body,
        source: {
          branch: { name: branch },
          ...(from !== `${workspace}/${repo}` && { repository: { full_name: from } }),
        },
        destination: { branch: { name: base } },
        draft,
        ...(people.length > 0 && { reviewers: people }),
      }
      const options = { method: 'POST', body: pull, scope, hints: hintsOf(repo), reply: Pull }
      return pullOf(await call<Pull>(`open a pull request in ${workspace}/${repo}`, pathOf(repo), options))
    },
    // Reviewers are set when a pull request is opened. A pull request that was already open keeps its reviewers.
    async complete() {},
    async examine() {
      const user = await call<Static<typeof User>>('get the account', '/user', {
        scope: 'read:user:bitbucket',
        reply: User,
      })
      const query = { pagelen: 1 }
      const missing = await lacking({
        'read:repository:bitbucket': () =>
          call(`list repositories of ${workspace}`, `/repositories/${pathSegment(workspace)}`, {
            query,
            reply: Values,
          }),
      })
      return { who: user.display_name, missing, text: `${base}, workspace ${workspace}` }
    },
  }
}
