// Pull requests on GitHub, with Octokit and the guarded fetch.
// https://docs.github.com/en/rest/pulls/pulls

import { type AgentContext, AgentError } from '../../agent/define.ts'
import { explain } from '../../agent/json-api.ts'
import { type CodeHost, type PullRequest, repositoriesOf, type Wishes } from './code-host.ts'

export interface GitHubAccount {
  token?: string
  base_branch?: string
  remote?: string
  pr_draft?: boolean
  base_url?: string
}

interface GitHubPull {
  number: number
  html_url: string
  head: { ref: string; sha: string; user?: { login: string } | null }
  requested_reviewers?: { login: string }[] | null | undefined
  requested_teams?: { slug: string }[] | null | undefined
}

/** A code host for GitHub. The token of `account` comes from the setting `<provider>.token`. */
export async function githubHost(
  context: AgentContext<unknown>,
  provider: string,
  account: GitHubAccount,
  { reviewers, labels }: Wishes,
): Promise<CodeHost> {
  const { Octokit } = await import('@octokit/rest')
  const { token = '', base_url = 'https://api.github.com' } = account
  const setting = `${provider}.token`
  const guarded = async (url: string, { method, headers, body }: RequestInit) => {
    const accepting = { ...(headers as Record<string, string>), accept: 'application/vnd.github+json' }
    const reply = await context.fetch(url, { method: method!, headers: accepting, ...(body && { body }) })
    if (reply.ok) return asJson(reply)
    const doing = `${method} ${new URL(url).pathname}`
    throw await explain(context, reply, doing, { setting, scope: 'contents, pull requests and issues: write' })
  }
  const log = { debug() {}, info() {}, warn: (text: string) => context.log(text), error() {} }
  const request = { fetch: guarded, log }
  const { rest } = new Octokit({ auth: token, baseUrl: base_url.replace(/\/+$/, ''), userAgent: 'cadre', log, request })
  const pullOf = ({ number, html_url, head, requested_reviewers, requested_teams }: GitHubPull): PullRequest => {
    const people = (requested_reviewers ?? []).map(({ login }) => login)
    const teams = (requested_teams ?? []).map(({ slug }) => slug)
    return { number, url: html_url, commit: head.sha, reviewers: [...people, ...teams] }
  }
  return {
    host: repositoriesOf(base_url),
    login: { user: 'x-access-token', password: token, setting },
    remote: account.remote ?? 'origin',
    base: account.base_branch,
    draft: account.pr_draft ?? false,
    async find({ owner, repo, branch }) {
      const { data } = await plain(rest.pulls.list({ owner, repo, head: `${owner}:${branch}`, state: 'open' }))
      // GitHub ignores a `head` that it does not understand, so the results are filtered here too.
      const found = data.find(({ head }) => head.ref === branch && (head.user?.login ?? owner) === owner)
      return found ? pullOf(found) : null
    },
    async open({ owner, repo, branch, base }, pull) {
      return pullOf((await plain(rest.pulls.create({ owner, repo, head: branch, base, ...pull }))).data)
    },
    async complete({ owner, repo }, { number, reviewers: asked }) {
      const wanted = reviewers.filter(name => !asked.includes(name.split('/').at(-1)!))
      if (wanted.length > 0) {
        const people = wanted.filter(name => !name.includes('/'))
        const teams = wanted.filter(name => name.includes('/')).map(name => name.split('/').at(-1)!)
        const asking = { owner, repo, pull_number: number, reviewers: people, team_reviewers: teams }
        await plain(rest.pulls.requestReviewers(asking))
      }
      if (labels.length > 0)
        await plain(rest.issues.addLabels({ owner, repo, issue_number: number, labels: [...labels] }))
    },
    async examine() {
      const { data, headers } = await plain(rest.users.getAuthenticated())
      // Classic tokens list their scopes. The permissions of a fine-grained token depend on the repository.
      const scopes = (headers['x-oauth-scopes'] as string | undefined)?.split(/\s*,\s*/)
      const missing = scopes && !scopes.includes('repo') ? ['repo'] : []
      const text = scopes ? base_url : `${base_url}; the permissions of a fine-grained token depend on the repository`
      return { who: data.login, missing, text }
    },
  }
}

/**
 * Octokit treats every type except `application/json` as text, even the type that it asked for. The body is therefore
 * read here, where its size is limited.
 */
async function asJson(reply: Response): Promise<Response> {
  const headers = { ...Object.fromEntries(reply.headers), 'content-type': 'application/json' }
  return new Response(reply.body && (await reply.bytes()), { status: reply.status, headers })
}

/** Unwraps an error that the guarded fetch threw from the error that Octokit puts around it. */
async function plain<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    const { cause } = error as Error
    throw cause instanceof AgentError ? cause : error
  }
}
