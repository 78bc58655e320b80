// What the git agent needs of a code host: where its repositories are, and their pull requests.

import type { Diagnosis } from '../../agent/define.ts'
import type { Worktree } from './worktree.ts'

/** A code host and the account there. */
export interface CodeHost {
  /** Of its repositories' remotes. */
  host: string
  login: { user: string; password: string; setting: string }
  remote: string
  base: string | undefined
  draft: boolean
  find(tree: Worktree): Promise<PullRequest | null>
  open(tree: Worktree, pull: { title: string; body: string; draft: boolean }): Promise<PullRequest>
  /** Adds the reviewers and labels that it has not. */
  complete(tree: Worktree, pull: PullRequest): Promise<void>
  examine(): Promise<Diagnosis>
}

export interface PullRequest {
  number: number
  url: string
  /** Of its branch, perhaps shortened. */
  commit: string
  reviewers: readonly string[]
}

/** What a pull request is to have beside its words. */
export interface Wishes {
  reviewers: readonly string[]
  labels: readonly string[]
}

/** Where the repositories of an API lie: on its host, without the `api.` of those that have one. */
export function repositoriesOf(base: string): string {
  return new URL(base).hostname.replace(/^api\./, '')
}
