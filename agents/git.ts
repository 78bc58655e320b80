// git: commits the changes of a folder, pushes them to a branch, and opens a pull request on GitHub or Bitbucket Cloud.
//
//   settings: provider github (or host_a): github.token, and github.base_branch?, .remote? (origin), .pr_draft?, .base_url?
//             provider bitbucket (or host_b): bitbucket.email, .api_token, .workspace, and .base_branch?, .base_url?
//   create_pr, on the phase: project_dir? (the workspace), base_branch?, branch?, title?, body?, commit_message?, draft?,
//             reviewers?, labels?; the same under `notify: {on_complete: {action: create_pr, …}}`
//
// base_branch is taken from the phase, the setting or the HEAD of the remote, in this order, and is `main` otherwise.
// branch is the branch that is checked out, or a new one named after the run if the base branch is checked out; it
// stays checked out. An open pull request for the branch gets the new commits and keeps its title and text. Nothing is
// force-pushed.
//
// GitHub: reviewers are logins, or org/team. The token needs write access to `contents` and `pull requests`, and to
// `issues` for labels.
// Bitbucket: reviewers are UUIDs or account ids; labels are not supported. The token needs the read: and write: scopes
// of repository:bitbucket and pullrequest:bitbucket, and read:user:bitbucket for `doctor`.
//
// The token is sent only to the provider's own host or that of base_url, over https (http on loopback). A remote on
// that host with an ssh address is reached by https. Other ssh remotes and folders are pushed to without the token.
// Hooks do not run, so files of Git LFS and commits in submodules are not pushed. A proxy or CA for git must be set in
// git's global configuration.
// Programs, proxies and helpers in a repository's own configuration are ignored, and filters and certificates are
// refused, unless github.trusted_folders (or bitbucket.trusted_folders) names the folder or a parent of it:
// [~/projects/app].
//
// https://docs.github.com/en/rest/pulls/pulls
// https://developer.atlassian.com/cloud/bitbucket/rest/api-group-pullrequests/
// https://support.atlassian.com/bitbucket-cloud/docs/using-api-tokens/

import { type AgentContext, AgentError, type AgentResult, agent, BaseUrl, beforehand, secret, Type } from 'cadre'
import {
  bitbucketHost,
  type CodeHost,
  commitAndPush,
  githubHost,
  headOf,
  oneLine,
  openWorktree,
  type PullRequest,
  type Worktree,
  withSent,
} from 'cadre/vendors'

const text = Type.String({ minLength: 1 })
const closed = { additionalProperties: false }

const TrustedFolders = Type.Optional(
  Type.Array(text, {
    description: 'Folders whose repositories may set programs and proxies for git in their own configuration.',
  }),
)
const GitHub = Type.Object(
  {
    token: Type.Optional(secret()),
    base_branch: Type.Optional(text),
    remote: Type.Optional(text),
    pr_draft: Type.Optional(Type.Boolean()),
    base_url: BaseUrl,
    trusted_folders: TrustedFolders,
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
    trusted_folders: TrustedFolders,
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
  doctor: async context => (await hostOf({}, context)).examine(),
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

async function createPullRequest(entry: Entry, context: Context): Promise<AgentResult> {
  const host = await hostOf(entry, context)
  const { tree, commit, pull } = await beforehand(async () => {
    const tree = await treeOf(entry, host, context)
    const message =
      entry.commit_message ?? entry.title ?? `Changes of run ${oneLine(context.run.name ?? context.run.id)}`
    const commit = await commitAndPush(tree, message)
    return { tree, commit, pull: commit === null ? null : await host.find(tree) }
  })
  if (commit === null) {
    const data = { number: null, url: null, branch: tree.branch, commit: await headOf(tree) }
    return { text: `no pull request was opened: there are no changes and no commits ahead of ${tree.base}`, data }
  }
  const title = entry.title ?? (await tree.git(['log', '--max-count=1', '--format=%s']))
  const body = entry.body ?? `Opened by run ${context.run.id}, phase ${context.phase.name}.`
  const opened = pull ?? (await host.open(tree, { title, body, draft: entry.draft ?? host.draft }))
  await complete(opened, tree, host, context)
  return resultOf(opened, tree.branch, commit, pull ? 'updated' : 'opened')
}

/**
 * The open pull request for the branch, if it contains every local commit. Reviewers and labels that it lacks are
 * added.
 */
async function find(entry: Entry, context: Context): Promise<AgentResult | null> {
  const host = await hostOf(entry, context)
  const tree = await treeOf(entry, host, context)
  if (tree.changed || tree.current !== tree.branch) return null
  const [commit, pull] = [await headOf(tree), await host.find(tree)]
  if (!pull?.commit || !commit.startsWith(pull.commit)) return null
  await complete(pull, tree, host, context)
  return resultOf(pull, tree.branch, commit, 'found')
}

/**
 * Adds reviewers and labels. The pull request is already open and adding them twice does no harm, so a failure here may
 * be retried.
 */
async function complete(pull: PullRequest, tree: Worktree, host: CodeHost, context: Context): Promise<void> {
  try {
    await host.complete(tree, pull)
  } catch (error) {
    context.log(`pull request ${pull.number} is open, but its reviewers or labels could not be set: ${pull.url}`)
    throw error instanceof AgentError ? withSent(error, 'no') : error
  }
}

function resultOf({ number, url }: PullRequest, branch: string, commit: string, how: string): AgentResult {
  const data = { number, url, branch, commit }
  return { text: `pull request ${number} ${how}: ${url}`, data, external: { id: String(number), url } }
}

function treeOf({ project_dir, base_branch, branch }: Entry, code: CodeHost, context: Context): Promise<Worktree> {
  const { remote, host, login, base } = code
  const { settings } = context
  const { trusted_folders: folders = [] } = isGitHub(settings) ? githubOf(settings) : bitbucketOf(settings)
  const trusted = { folders, setting: `${settings.provider}.trusted_folders` }
  return openWorktree(
    { folder: project_dir ?? '.', remote, host, login, base: base_branch ?? base, branch, trusted },
    context,
  )
}

async function hostOf({ reviewers = [], labels = [] }: Entry, context: Context): Promise<CodeHost> {
  const { settings } = context
  const wishes = { reviewers, labels }
  return isGitHub(settings)
    ? githubHost(context, settings.provider, githubOf(settings), wishes)
    : bitbucketHost(context, settings.provider, bitbucketOf(settings), wishes)
}
