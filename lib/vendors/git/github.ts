// Pull requests on GitHub, with Octokit and the guarded fetch.
// https://docs.github.com/en/rest/pulls/pulls

import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { checkReply, explain, jsonOf } from '../../agent/json-api.ts'
import { isLoopback } from '../../agent/net/address.ts'
import type { ApiOptions } from '../../agent/net/requests.ts'
import { Type } from '../../schema/type.ts'
import { apiRoot, type CodeHost, type PullRequest, type Roots, repositoriesOf, type Wishes } from './code-host.ts'

export interface GitHubAccount {
  token?: string
  base_branch?: string
  remote?: string
  push_to?: string
  pr_draft?: boolean
  base_url?: string
}

const Login = Type.Object({ login: Type.String() })
const Pull = Type.Object({
  number: Type.Integer(),
  html_url: Type.String({ minLength: 1 }),
  head: Type.Object({
    ref: Type.String(),
    sha: Type.String(),
    user: Type.Optional(Type.Union([Login, Type.Null()])),
    repo: Type.Optional(Type.Union([Type.Object({ name: Type.String() }), Type.Null()])),
  }),
  requested_reviewers: Type.Optional(Type.Union([Type.Array(Login), Type.Null()])),
  requested_teams: Type.Optional(Type.Union([Type.Array(Type.Object({ slug: Type.String() })), Type.Null()])),
})
const DOT_COM = 'https://api.github.com'

export const GITHUB_ROOTS: Roots = {
  known: { 'https://github.com': DOT_COM, 'https://www.github.com': DOT_COM, [DOT_COM]: DOT_COM },
  path: '/api/v3',
}

/**
 * The root of the API. That of an own server is below /api/v3, except on this machine, where an address is taken as it is. That
 * of an enterprise on ghe.com has a host of its own.
 */
function rootOf(given: string): string {
  const root = apiRoot(given, GITHUB_ROOTS)!
  const { hostname, pathname } = new URL(root)
  if (pathname === '/' && /^[^.]+\.ghe\.com$/.test(hostname)) return `https://api.${hostname}`
  return pathname !== '/' || hostname.startsWith('api.') || isLoopback(hostname) ? root : `${root}/api/v3`
}

/** The API with the token of `account`, which comes from the setting `<provider>.token`. */
export function githubApi(provider: string, { token = '', base_url = DOT_COM }: GitHubAccount): ApiOptions {
  return { setting: `${provider}.token`, base: rootOf(base_url), headers: { authorization: `Bearer ${token}` } }
}

/** A code host for GitHub. The token of `account` comes from the setting `<provider>.token`. */
export async function githubHost(
  context: AgentContext<unknown>,
  provider: string,
  account: GitHubAccount,
  { reviewers, labels }: Wishes,
): Promise<CodeHost> {
  const { Octokit } = await import('@octokit/rest')
  const { token = '' } = account
  const base_url = rootOf(account.base_url ?? DOT_COM)
  const setting = `${provider}.token`
  const guarded = async (url: string, { method, headers, body }: RequestInit) => {
    const accepting = { ...(headers as Record<string, string>), accept: 'application/vnd.github+json' }
    const reply = await context.fetch(url, { method: method!, headers: accepting, ...(body && { body }) })
    const { pathname } = new URL(url)
    const doing = `${method} ${pathname}`
    if (reply.ok) return asJson(context, doing, reply)
    const [, repository] = /\/repos\/([^/]+\/[^/]+)/.exec(pathname) ?? []
    const credential = { setting, scope: 'contents, pull requests and issues: write' }
    const missing = `check that ${repository} exists on ${base_url}, and that the token of agents.${context.agent}.${setting} can see it`
    const hints: Record<number, string> = repository ? { 404: missing } : {}
    throw await explain(context, reply, doing, credential, hints)
  }
  const log = { debug() {}, info() {}, warn: (text: string) => context.log(text), error() {} }
  const request = { fetch: guarded, log }
  const { rest } = new Octokit({ auth: token, baseUrl: base_url, userAgent: 'cadre', log, request })
  const pullOf = (doing: string, given: unknown): PullRequest => {
    checkReply(context, doing, Pull, given)
    const { number, html_url, head, requested_reviewers, requested_teams } = given
    const people = (requested_reviewers ?? []).map(({ login }) => login)
    const teams = (requested_teams ?? []).map(({ slug }) => slug)
    return { number, url: html_url, commit: head.sha, reviewers: [...people, ...teams] }
  }
  return {
    host: repositoriesOf(base_url),
    login: { user: 'x-access-token', password: token, setting },
    remote: account.remote ?? 'origin',
    pushTo: account.push_to,
    base: account.base_branch,
    draft: account.pr_draft ?? false,
    async find({ owner, repo, branch, target }) {
      const doing = `list pull requests of ${owner}/${repo}`
      const head = `${target.owner}:${branch}`
      const { data } = await plain(rest.pulls.list({ owner, repo, head, state: 'open' }))
      checkReply(context, doing, Type.Array(Pull), data)
      // GitHub ignores a `head` that it does not understand, so the results are filtered here too.
      const found = data.filter(({ head: { ref, user, repo: from } }) => {
        const isOwn = (user?.login ?? target.owner).toLowerCase() === target.owner.toLowerCase()
        return ref === branch && isOwn && (from?.name ?? target.repo).toLowerCase() === target.repo.toLowerCase()
      })
      return found.map(each => pullOf(doing, each)).toSorted((a, b) => a.number - b.number)
    },
    async open({ owner, repo, branch, base, target }, pull) {
      const isFork = target.owner !== owner || target.repo !== repo
      const head = isFork ? `${target.owner}:${branch}` : branch
      // The name of the fork is needed where the owner has both.
      const from = isFork && target.owner === owner ? { head_repo: target.repo } : {}
      const { data } = await plain(rest.pulls.create({ owner, repo, head, base, ...from, ...pull }))
      return pullOf(`open a pull request in ${owner}/${repo}`, data)
    },
    async complete({ owner, repo }, { number, reviewers: asked }) {
      const wanted = reviewers.filter(name => !asked.includes(name.split('/').at(-1)!))
      if (wanted.length > 0) {
        const people = wanted.filter(name => !name.includes('/'))
        const teams = wanted.filter(name => name.includes('/')).map(name => name.split('/').at(-1)!)
        const asking = { owner, repo, pull_number: number, reviewers: people, team_reviewers: teams }
        const { data } = await plain(rest.pulls.requestReviewers(asking))
        checkReply(context, `ask for reviews in ${owner}/${repo}`, Pull, data)
      }
      if (labels.length > 0) {
        const adding = { owner, repo, issue_number: number, labels: [...labels] }
        const { data } = await plain(rest.issues.addLabels(adding))
        checkReply(context, `add labels in ${owner}/${repo}`, Type.Array(Type.Object({})), data)
      }
    },
    async examine() {
      const { data, headers } = await plain(rest.users.getAuthenticated())
      checkReply(context, 'get the account', Login, data)
      // Classic tokens list their scopes. The permissions of a fine-grained token depend on the repository.
      const scopes = (headers['x-oauth-scopes'] as string | undefined)?.split(/\s*,\s*/)
      const missing = scopes && !scopes.includes('repo') ? ['repo'] : []
      const text = scopes ? base_url : `${base_url}; the permissions of a fine-grained token depend on the repository`
      return { who: data.login, missing, text, expires_at: endOf(headers) }
    },
  }
}

/** When the token ends, which GitHub says as `2026-03-01 09:00:00 UTC`; null for one without an end. */
function endOf(headers: Record<string, unknown>): number | null {
  const said = String(headers['github-authentication-token-expiration'] ?? '')
  const end = Date.parse(said.replace(/ UTC$/, ' +0000'))
  return Number.isNaN(end) ? null : end
}

/**
 * Octokit treats every type except `application/json` as text, even the type that it asked for. The body is therefore
 * read here, where its size is limited and a web page is an error that says so.
 */
async function asJson(context: AgentContext<unknown>, doing: string, reply: Response): Promise<Response> {
  const headers = { ...Object.fromEntries(reply.headers), 'content-type': 'application/json' }
  return new Response(JSON.stringify(await jsonOf(context, doing, reply)), { status: reply.status, headers })
}

/**
 * Unwraps an error that the guarded fetch threw from the error that Octokit puts around it. A text with half of a character
 * (a lone surrogate) cannot be part of an address.
 */
async function plain<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (error instanceof URIError) {
      throw new AgentError('the name of a branch or repository has half of a character, so it cannot be sent', {
        cause: error,
      })
    }
    const { cause } = error as Error
    throw cause instanceof AgentError ? cause : error
  }
}
