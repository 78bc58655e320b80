// git: commits the changes of a folder, pushes them to a branch, and opens a pull request on GitHub or Bitbucket Cloud.
//
//   settings: provider github (or host_a): github.token, and github.base_branch?, .remote? (origin), .pr_draft?, .base_url?
//             provider bitbucket (or host_b): bitbucket.email, .api_token, .workspace, and .base_branch?, .base_url?
//             both: .push_to?, the git remote of a fork
//   create_pr, on the phase: project_dir? (the workspace), base_branch?, branch?, push_to?, title?, body?, commit_message?, draft?,
//             reviewers?, labels?; the same under `notify: {on_complete: {action: create_pr, …}}`
//
// base_branch is taken from the phase, the setting or the HEAD of the remote, in this order, and is `main` otherwise.
// branch is the branch that is checked out, or a new one named after the run if the base branch is checked out; it
// stays checked out. An open pull request for the branch gets the new commits and keeps its title and text. Nothing is
// force-pushed. A repetition after a lost reply meets the commits of the branch and its open pull request, which is looked
// for in a list for 60 s; GitHub refuses a second one for the branch, and then the open one is the result. Where Bitbucket
// has opened a second one, both are named.
//
// GitHub: reviewers are logins, or org/team. The token needs write access to `contents` and `pull requests`, and to
// `issues` for labels.
// Bitbucket: reviewers are UUIDs or account ids; labels are not supported. The token needs the read: and write: scopes
// of repository:bitbucket and pullrequest:bitbucket, and read:user:bitbucket for `doctor`.
//
// The token is sent only to the provider's own host or that of base_url, over https (http on loopback). A remote on
// that host with an ssh address is reached by https. Other ssh remotes are pushed to without the token.
// Hooks do not run, so files of Git LFS and commits in submodules are not pushed. A proxy or CA for git must be set in
// git's global configuration.
// A repository whose own configuration has more than remotes, branches and a user is refused, and so is one that has
// links, or the objects or the `.git` of another folder, and a folder as remote, unless github.trusted_folders (or
// bitbucket.trusted_folders) names the folder or a parent of it: [~/projects/app]. Work trees of `git worktree` and
// submodules need no trust.
//
// https://docs.github.com/en/rest/pulls/pulls
// https://developer.atlassian.com/cloud/bitbucket/rest/api-group-pullrequests/
// https://support.atlassian.com/bitbucket-cloud/docs/using-api-tokens/

import { type AgentContext, AgentError, type AgentResult, agent, beforehand, secret, Type } from 'cadre'
import {
  BITBUCKET_ROOTS,
  bitbucketApi,
  bitbucketHost,
  type CodeHost,
  commitAndPush,
  foundAmong,
  GITHUB_ROOTS,
  githubApi,
  githubHost,
  headOf,
  nullable,
  oneLine,
  openWorktree,
  type PullRequest,
  type Worktree,
  whyNoRoot,
  withSent,
} from 'cadre/vendors'

const text = (description: string) => Type.Optional(Type.String({ minLength: 1, description }))
const closed = { additionalProperties: false }

const common = {
  base_branch: text('The branch that pull requests go into. By default it is the main branch of the repository.'),
  push_to: text('The name of the git remote of a fork, to which branches are pushed and from which pull requests go.'),
  trusted_folders: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      description:
        'Folders whose repositories may say in their own configuration what git runs, and that may be remotes.',
    }),
  ),
}
const GitHub = Type.Object(
  {
    token: Type.Optional(secret({ description: 'A token that may write contents, pull requests and issues.' })),
    remote: text('The name of the git remote that is the repository. By default it is origin.'),
    pr_draft: Type.Optional(Type.Boolean({ description: 'Whether pull requests are opened as drafts.' })),
    base_url: Type.Optional(
      Type.String({
        pattern: '^https?://[^/]',
        'x-expected': 'an address such as https://github.acme.com',
        description:
          'The address of a GitHub server of your own (with or without /api/v3), or of an enterprise on ghe.com.',
      }),
    ),
    ...common,
  },
  { ...closed, description: 'The account on GitHub.' },
)
const Bitbucket = Type.Object(
  {
    email: text('The e-mail address of the Atlassian account.'),
    api_token: Type.Optional(secret({ description: 'An API token with scopes, made for Bitbucket.' })),
    workspace: text('The workspace of the repositories, as in their address.'),
    base_url: Type.Optional(
      Type.String({
        pattern: '^https?://[^/]',
        'x-expected': 'an address such as https://api.bitbucket.org/2.0',
        description: 'Another address of the API of Bitbucket Cloud; Bitbucket Data Center has a different API.',
      }),
    ),
    ...common,
  },
  { ...closed, description: 'The account on Bitbucket Cloud.' },
)
const Settings = Type.Object(
  {
    provider: Type.Enum(['github', 'bitbucket', 'host_a', 'host_b'], {
      description: 'Where the repositories are: github (also host_a) or bitbucket (also host_b).',
    }),
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
  project_dir: text('The folder whose changes are committed. By default it is the workspace of the run.'),
  base_branch: text('The branch that the pull request goes into. It takes precedence over the setting.'),
  branch: text('The branch to push. By default it is the one that is checked out, or a new one named after the run.'),
  push_to: text('The name of the git remote of a fork to push to. It takes precedence over the setting.'),
  title: text('The title of the pull request. By default it is the subject of the last commit.'),
  body: Type.Optional(Type.String({ description: 'The text of the pull request, in Markdown.' })),
  commit_message: text('The message of the commit. By default it is the title.'),
  draft: Type.Optional(Type.Boolean({ description: 'Whether the pull request is opened as a draft.' })),
  reviewers: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      description: 'Who is asked to review: on GitHub logins or org/team, on Bitbucket account ids or UUIDs.',
    }),
  ),
  labels: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), { description: 'Labels of the pull request, on GitHub only.' }),
  ),
}
const Entry = Type.Object(fields, closed)
type Entry = Type.Static<typeof Entry>
const Opened = Type.Object({
  number: nullable(Type.Integer(), {
    description: 'The number of the pull request; null if there was nothing to push.',
  }),
  url: nullable(Type.String(), { description: 'Its address in a browser; null if there was nothing to push.' }),
  branch: Type.String({ description: 'The branch.' }),
  commit: Type.String({ description: 'The last commit of the branch.' }),
})

/** What `doctor` can find missing on either host. */
const PERMISSIONS = ['repo', 'read:repository:bitbucket']

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
  addresses: () => ['https://api.github.com', 'https://api.bitbucket.org'],
  check({ github, host_a, bitbucket, host_b }) {
    const roots = (account: { base_url?: string | undefined } | undefined, known: Parameters<typeof whyNoRoot>[1]) =>
      account?.base_url !== undefined && whyNoRoot(account.base_url, known)
    const email = (account: { email?: string | undefined } | undefined) =>
      account?.email?.includes('@') === false && 'must be the e-mail address of the account: write it as me@acme.com'
    return {
      'github.base_url': roots(github, GITHUB_ROOTS),
      'host_a.base_url': roots(host_a, GITHUB_ROOTS),
      'bitbucket.base_url': roots(bitbucket, BITBUCKET_ROOTS),
      'host_b.base_url': roots(host_b, BITBUCKET_ROOTS),
      'bitbucket.email': email(bitbucket),
      'host_b.email': email(host_b),
    }
  },
  account: ({ settings }) =>
    isGitHub(settings)
      ? githubApi(settings.provider, githubOf(settings))
      : bitbucketApi(settings.provider, bitbucketOf(settings)),
  doctor: async context => (await hostOf({}, context)).examine(),
  actions: {
    create_pr: {
      direction: 'phase',
      effect: 'once',
      permissions: PERMISSIONS,
      description: 'Commits and pushes what changed, and opens a pull request or updates the one that is open.',
      example: { title: 'Update the report', branch: 'update-report' },
      entry: Entry,
      data: Opened,
      run: createPullRequest,
      find,
    },
  },
  notify: {
    description: 'Commits, pushes and opens a pull request when an event of a run happens.',
    effect: 'once',
    permissions: PERMISSIONS,
    example: { action: 'create_pr', title: 'What the failed run changed' },
    entry: Type.Object(
      {
        action: Type.Optional(Type.Literal('create_pr', { description: 'The only action that an event can have.' })),
        ...fields,
      },
      closed,
    ),
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
  await using tree = await beforehand(() => treeOf(entry, host, context))
  const { commit, pull } = await beforehand(async () => {
    const message =
      entry.commit_message ?? entry.title ?? `Changes of run ${oneLine(context.run.name ?? context.run.id)}`
    const commit = await commitAndPush(tree, message)
    const [pull] = commit === null ? [] : await host.find(tree)
    return { commit, pull }
  })
  if (commit === null) {
    const data = { number: null, url: null, branch: tree.branch, commit: await headOf(tree) }
    return { text: `no pull request was opened: there are no changes and no commits ahead of ${tree.base}`, data }
  }
  const title = entry.title ?? (await tree.git(['log', '--max-count=1', '--format=%s']))
  const body = entry.body ?? `Opened by run ${context.run.id}, phase ${context.phase.name}.`
  const opened = pull ?? (await openOnce(tree, { title, body, draft: entry.draft ?? host.draft }, host))
  await complete(opened, tree, host, context)
  return resultOf(opened, tree.branch, commit, pull ? 'updated' : 'opened')
}

/** Opens a pull request. A host refuses the second one for a branch: then it is the one of an earlier attempt. */
async function openOnce(tree: Worktree, pull: Parameters<CodeHost['open']>[1], host: CodeHost): Promise<PullRequest> {
  try {
    return await host.open(tree, pull)
  } catch (error) {
    const isRefused = error instanceof AgentError && ['rejected', 'conflict'].includes(error.code)
    const [there] = isRefused ? await host.find(tree) : []
    if (there) return there
    throw error
  }
}

/**
 * The open pull requests for the branch that contain every local commit. Reviewers and labels that they lack are added.
 */
async function find(entry: Entry, context: Context): Promise<AgentResult | AgentResult[] | null> {
  const host = await hostOf(entry, context)
  await using tree = await treeOf(entry, host, context)
  if (tree.changes || tree.current !== tree.branch) return null
  const [commit, pulls] = [await headOf(tree), await host.find(tree)]
  const found = pulls.filter(pull => pull.commit && commit.startsWith(pull.commit))
  for (const pull of found) await complete(pull, tree, host, context)
  return foundAmong(found.map(pull => resultOf(pull, tree.branch, commit, 'found')))
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

function treeOf(
  { project_dir, base_branch, branch, push_to }: Entry,
  code: CodeHost,
  context: Context,
): Promise<Worktree> {
  const { remote, host, login, base } = code
  const { settings } = context
  const { trusted_folders: folders = [] } = isGitHub(settings) ? githubOf(settings) : bitbucketOf(settings)
  const trusted = { folders, setting: `${settings.provider}.trusted_folders` }
  return openWorktree(
    {
      folder: project_dir ?? '.',
      remote,
      pushTo: push_to ?? code.pushTo,
      host,
      login,
      base: base_branch ?? base,
      branch,
      trusted,
    },
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
