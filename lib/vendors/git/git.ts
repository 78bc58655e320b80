// The exports of lib/vendors/git: a folder as the source of a pull request, and the code hosts that accept it.

export { BITBUCKET_ROOTS, bitbucketHost } from './bitbucket.ts'
export { type CodeHost, type PullRequest, whyNoRoot } from './code-host.ts'
export { GITHUB_ROOTS, githubHost } from './github.ts'
export { commitAndPush, headOf, openWorktree, type Worktree } from './worktree.ts'
