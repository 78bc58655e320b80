// The door of git: a folder as the source of a pull request, and the hosts that take it.

export { bitbucketHost } from './bitbucket.ts'
export type { CodeHost, PullRequest } from './code-host.ts'
export { githubHost } from './github.ts'
export { commitAndPush, headOf, openWorktree, type Worktree } from './worktree.ts'
