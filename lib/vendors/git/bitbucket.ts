// Pull requests on Bitbucket Cloud.
// https://developer.atlassian.com/cloud/bitbucket/rest/api-group-pullrequests/

import { type AgentContext, AgentError } from '../../agent/define.ts'
import { basicAuth, jsonApi, lacking, pathSegment } from '../../agent/json-api.ts'
import { pagesOf } from '../../agent/listing.ts'
import { type CodeHost, type PullRequest, repositoriesOf, type Wishes } from './code-host.ts'

export interface BitbucketAccount {
  email?: string
  api_token?: string
  workspace?: string
  base_branch?: string
  base_url?: string
}

interface BitbucketPull {
  id: number
  links: { html: { href: string } }
  source: { branch: { name: string }; commit?: { hash: string } | null; repository?: { full_name: string } | null }
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
    throw new AgentError(`[${context.place}] Bitbucket does not support labels`, options)
  }
  const { email = '', api_token = '', workspace = '', base_branch } = account
  const base = account.base_url ?? 'https://api.bitbucket.org/2.0'
  const setting = `${provider}.api_token`
  const headers = { authorization: basicAuth(email, api_token) }
  const call = jsonApi(context, { setting, base, headers })
  const scope = 'write:pullrequest:bitbucket'
  const pathOf = (repo: string) => `/repositories/${pathSegment(workspace)}/${pathSegment(repo)}/pullrequests`
  const pullOf = ({ id, links, source }: BitbucketPull): PullRequest => {
    return { number: id, url: links.html.href, commit: source.commit?.hash ?? '', reviewers: [] }
  }
  return {
    host: repositoriesOf(base),
    login: { user: 'x-bitbucket-api-token-auth', password: api_token, setting },
    remote: 'origin',
    base: base_branch,
    draft: false,
    async find({ repo, branch }) {
      const pages = pagesOf(async (query = '?state=OPEN') => {
        const reply = call<{ values: BitbucketPull[]; next?: string }>('list pull requests', pathOf(repo) + query, {
          scope: 'read:pullrequest:bitbucket',
        })
        const { values, next } = await reply
        return { items: values, next: next && URL.parse(next)?.search }
      })
      const mine = ({ source }: BitbucketPull) =>
        source.branch.name === branch && (source.repository?.full_name ?? `/${repo}`).endsWith(`/${repo}`)
      for await (const { items } of pages) {
        const found = items.find(mine)
        if (found) return pullOf(found)
      }
      return null
    },
    async open({ repo, branch, base }, { title, body, draft }) {
      const people = reviewers.map(name => (name.startsWith('{') ? { uuid: name } : { account_id: name }))
      const pull = {
        title,
        description: body,
        source: { branch: { name: branch } },
        destination: { branch: { name: base } },
        draft,
        ...(people.length > 0 && { reviewers: people }),
      }
      return pullOf(
        await call<BitbucketPull>('open a pull request', pathOf(repo), { method: 'POST', body: pull, scope }),
      )
    },
    // Reviewers are set when a pull request is opened. One that was already open keeps its own.
    async complete() {},
    async examine() {
      const user = await call<{ display_name: string }>('get the account', '/user', { scope: 'read:user:bitbucket' })
      const query = { pagelen: 1 }
      const missing = await lacking({
        'read:repository:bitbucket': () =>
          call(`list repositories of ${workspace}`, `/repositories/${pathSegment(workspace)}`, { query }),
      })
      return { who: user.display_name, missing, text: `${base}, workspace ${workspace}` }
    },
  }
}
