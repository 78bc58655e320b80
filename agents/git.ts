// git: commits what changed in a folder, pushes it to a branch, and opens a pull request on GitHub or Bitbucket Cloud.
//
//   settings: provider github (or host_a): github.token, and github.base_branch?, .remote? (origin), .pr_draft?, .base_url?
//             provider bitbucket (or host_b): bitbucket.email, .api_token, .workspace, and .base_branch?, .base_url?
//   create_pr, on the phase: project_dir? (the workspace), base_branch?, branch?, title?, body?, commit_message?, draft?,
//             reviewers?, labels?; the same under `notify: {on_complete: {action: create_pr, …}}`
//
// base_branch: the phase's, the setting's, the HEAD of the remote, main. branch: the one checked out unless that is the
// base, else a new one with a name of the run's own; it stays checked out. The pull request that is open for the branch
// gets the new commits, its title and text are left as they are. Nothing is forced.
// GitHub: reviewers are logins, or org/team; the token needs `contents` and `pull requests` (labels: `issues`), all write.
// Bitbucket: reviewers are UUIDs or account ids, it has no labels; scopes write:repository and write:pullrequest.
// The token goes to the provider's own host, or that of base_url, over https (http on loopback): a remote that is given
// by ssh is reached by https there. Other ssh remotes and folders are pushed to without it. Hooks do not run, so files of
// Git LFS stay behind. A proxy or CA of git's own is set in git's configuration.
// https://docs.github.com/en/rest/pulls/pulls
// https://developer.atlassian.com/cloud/bitbucket/rest/api-group-pullrequests/
// https://support.atlassian.com/bitbucket-cloud/docs/using-api-tokens/

import {
  type AgentContext,
  AgentError,
  type AgentResult,
  agent,
  BaseUrl,
  basicAuth,
  beforehand,
  commitAndPush,
  explain,
  headOf,
  jsonApi,
  openWorktree,
  pagesOf,
  pathSegment,
  secret,
  Type,
  type Worktree,
  withSent,
} from 'cadre'

const text = Type.String({ minLength: 1 })
const closed = { additionalProperties: false }

const GitHub = Type.Object(
  {
    token: Type.Optional(secret()),
    base_branch: Type.Optional(text),
    remote: Type.Optional(text),
    pr_draft: Type.Optional(Type.Boolean()),
    base_url: BaseUrl,
  },
  closed,
)
const Bitbucket = Type.Object(
  {
    email: Type.Optional(text),
    api_token: Type.Optional(secret()),
    workspace: Type.Optional(text),
    base_branch: Type.Optional(text),
    base_url: BaseUrl,
  },
  closed,
)
const Settings = Type.Object(
  {
    provider: Type.Enum(['github', 'bitbucket', 'host_a', 'host_b']),
    github: Type.Optional(GitHub),
    host_a: Type.Optional(GitHub),
    bitbucket: Type.Optional(Bitbucket),
    host_b: Type.Optional(Bitbucket),
  },
  closed,
)
type Settings = Type.Static<typeof Settings>
type Context = AgentContext<Settings>

const fields = {
  project_dir: Type.Optional(text),
  base_branch: Type.Optional(text),
  branch: Type.Optional(text),
  title: Type.Optional(text),
  body: Type.Optional(Type.String()),
  commit_message: Type.Optional(text),
  draft: Type.Optional(Type.Boolean()),
  reviewers: Type.Optional(Type.Array(text)),
  labels: Type.Optional(Type.Array(text)),
}
const Entry = Type.Object(fields, closed)
type Entry = Type.Static<typeof Entry>

export default agent({
  type: 'connector',
  version: '1.1.1',
  description: 'Commits, pushes, and opens pull requests on GitHub or Bitbucket.',
  settings: Settings,
  missing(settings) {
    const required = isGitHub(settings) ? (['token'] as const) : (['email', 'api_token', 'workspace'] as const)
    const given: Record<string, unknown> = isGitHub(settings) ? githubOf(settings) : bitbucketOf(settings)
    return required.filter(key => given[key] === undefined).map(key => `${settings.provider}.${key}`)
  },
  actions: { create_pr: { direction: 'phase', effect: 'once', entry: Entry, run: createPullRequest, find } },
  notify: {
    effect: 'once',
    entry: Type.Object({ action: Type.Optional(Type.Literal('create_pr')), ...fields }, closed),
    run: createPullRequest,
  },
})

function isGitHub({ provider }: Settings): boolean {
  return provider === 'github' || provider === 'host_a'
}

function githubOf({ host_a, github }: Settings): Type.Static<typeof GitHub> {
  return { ...host_a, ...github }
}

function bitbucketOf({ host_b, bitbucket }: Settings): Type.Static<typeof Bitbucket> {
  return { ...host_b, ...bitbucket }
}

/** A code host and the account there. */
interface Site {
  /** Of its repositories' remotes. */
  host: string
  login: { user: string; password: string; setting: string }
  remote: string
  base: string | undefined
  draft: boolean
  find(tree: Worktree): Promise<Pull | null>
  open(tree: Worktree, pull: { title: string; body: string; draft: boolean }): Promise<Pull>
  /** Adds the reviewers and labels that it has not. */
  complete(tree: Worktree, pull: Pull): Promise<void>
}

interface Pull {
  number: number
  url: string
  /** Of its branch, perhaps shortened. */
  commit: string
  reviewers: readonly string[]
}

async function createPullRequest(entry: Entry, context: Context): Promise<AgentResult> {
  const site = await siteOf(entry, context)
  const { tree, commit, pull } = await beforehand(async () => {
    const tree = await treeOf(entry, site, context)
    const message = entry.commit_message ?? entry.title ?? `Changes of run ${context.run.name ?? context.run.id}`
    const commit = await commitAndPush(tree, message)
    return { tree, commit, pull: commit === null ? null : await site.find(tree) }
  })
  if (commit === null) {
    const data = { number: null, url: null, branch: tree.branch, commit: await headOf(tree) }
    return { text: `nothing changed and no commits ahead of ${tree.base}: no pull request`, data }
  }
  const title = entry.title ?? (await tree.git(['log', '--max-count=1', '--format=%s']))
  const body = entry.body ?? `Opened by run ${context.run.id}, phase ${context.phase.name}.`
  const opened = pull ?? (await site.open(tree, { title, body, draft: entry.draft ?? site.draft }))
  try {
    await site.complete(tree, opened)
  } catch (error) {
    if (!(error instanceof AgentError)) throw error
    context.log(`pull request ${opened.number} is open, but its reviewers or labels are not set: ${opened.url}`)
    throw withSent(error, 'no')
  }
  return resultOf(opened, tree.branch, commit, pull ? 'updated' : 'opened')
}

/** What is open for the branch, when it has all that is here. */
async function find(entry: Entry, context: Context): Promise<AgentResult | null> {
  const site = await siteOf(entry, context)
  const tree = await treeOf(entry, site, context)
  if (tree.changed || tree.current !== tree.branch) return null
  const [commit, pull] = [await headOf(tree), await site.find(tree)]
  return pull?.commit && commit.startsWith(pull.commit) ? resultOf(pull, tree.branch, commit, 'found') : null
}

function resultOf({ number, url }: Pull, branch: string, commit: string, how: string): AgentResult {
  const data = { number, url, branch, commit }
  return { text: `pull request ${number} ${how}: ${url}`, data, external: { id: String(number), url } }
}

function treeOf({ project_dir, base_branch, branch }: Entry, site: Site, context: Context): Promise<Worktree> {
  const { remote, host, login, base } = site
  return openWorktree({ folder: project_dir ?? '.', remote, host, login, base: base_branch ?? base, branch }, context)
}

async function siteOf(entry: Entry, context: Context): Promise<Site> {
  return isGitHub(context.settings) ? github(entry, context) : bitbucket(entry, context)
}

/** Where the repositories of an API lie: on its host, without the `api.` of those that have one. */
function hostOf(base: string): string {
  return new URL(base).hostname.replace(/^api\./, '')
}

interface GitHubPull {
  number: number
  html_url: string
  head: { ref: string; sha: string; user?: { login: string } | null }
  requested_reviewers?: { login: string }[] | null | undefined
  requested_teams?: { slug: string }[] | null | undefined
}

async function github({ reviewers = [], labels = [] }: Entry, context: Context): Promise<Site> {
  const { Octokit } = await import('@octokit/rest')
  const { token = '', base_url = 'https://api.github.com', ...account } = githubOf(context.settings)
  const setting = `${context.settings.provider}.token`
  const guarded = async (url: string, { method, headers, body }: RequestInit) => {
    const accepting = { ...(headers as Record<string, string>), accept: 'application/vnd.github+json' }
    const reply = await context.fetch(url, { method: method!, headers: accepting, ...(body && { body }) })
    if (reply.ok) return reply
    const doing = `${method} ${new URL(url).pathname}`
    throw await explain(reply, doing, { agent: 'git', setting, scope: 'contents, pull requests and issues: write' })
  }
  const log = { debug() {}, info() {}, warn: (text: string) => context.log(text), error() {} }
  const request = { fetch: guarded, log }
  const { rest } = new Octokit({ auth: token, baseUrl: base_url.replace(/\/+$/, ''), userAgent: 'cadre', log, request })
  const pullOf = ({ number, html_url, head, requested_reviewers, requested_teams }: GitHubPull): Pull => {
    const people = (requested_reviewers ?? []).map(({ login }) => login)
    const teams = (requested_teams ?? []).map(({ slug }) => slug)
    return { number, url: html_url, commit: head.sha, reviewers: [...people, ...teams] }
  }
  return {
    host: hostOf(base_url),
    login: { user: 'x-access-token', password: token, setting },
    remote: account.remote ?? 'origin',
    base: account.base_branch,
    draft: account.pr_draft ?? false,
    async find({ owner, repo, branch }) {
      const { data } = await plain(rest.pulls.list({ owner, repo, head: `${owner}:${branch}`, state: 'open' }))
      // A `head` that it cannot read is no filter to GitHub.
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
      if (labels.length > 0) await plain(rest.issues.addLabels({ owner, repo, issue_number: number, labels }))
    },
  }
}

/** The error that our own fetch threw, out of the one that octokit wraps around it. */
async function plain<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    const { cause } = error as Error
    throw cause instanceof AgentError ? cause : error
  }
}

interface BitbucketPull {
  id: number
  links: { html: { href: string } }
  source: { branch: { name: string }; commit?: { hash: string } | null; repository?: { full_name: string } | null }
}

function bitbucket({ reviewers = [], labels = [] }: Entry, context: Context): Site {
  if (labels.length > 0) {
    const options = { code: 'invalid_request', hint: 'leave out `labels`', sent: 'no' } as const
    throw new AgentError('[git] Bitbucket has no labels', options)
  }
  const { email = '', api_token = '', workspace = '', ...account } = bitbucketOf(context.settings)
  const { base_url: base = 'https://api.bitbucket.org/2.0', base_branch } = account
  const setting = `${context.settings.provider}.api_token`
  const headers = { authorization: basicAuth(email, api_token) }
  const call = jsonApi(context, { agent: 'git', setting, base, headers })
  const scope = 'write:pullrequest:bitbucket'
  const pathOf = (repo: string) => `/repositories/${pathSegment(workspace)}/${pathSegment(repo)}/pullrequests`
  const pullOf = ({ id, links, source }: BitbucketPull): Pull => {
    return { number: id, url: links.html.href, commit: source.commit?.hash ?? '', reviewers: [] }
  }
  return {
    host: hostOf(base),
    login: { user: 'x-bitbucket-api-token-auth', password: api_token, setting },
    remote: 'origin',
    base: base_branch,
    draft: false,
    async find({ repo, branch }) {
      const pages = pagesOf(async (query = '?state=OPEN') => {
        const reply = call<{ values: BitbucketPull[]; next?: string }>('list pull requests', pathOf(repo) + query, {
          scope,
        })
        const { values, next } = await reply
        return { items: values, next: next && new URL(next).search }
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
    // Reviewers are named when it is opened; a pull request that was open keeps its own.
    async complete() {},
  }
}
