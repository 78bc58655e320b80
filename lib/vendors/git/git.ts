// The exports of lib/vendors/git: a folder as the source of a pull request, and the code hosts that accept it.

export { bitbucketHost } from './bitbucket.ts'
export type { CodeHost, PullRequest } from './code-host.ts'
export { githubHost } from './github.ts'
export { commitAndPush, headOf, openWorktree, type Worktree } from './worktree.ts'
