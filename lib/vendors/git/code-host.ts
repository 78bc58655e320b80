// The interface of a code host that the git agent needs: the location of its repositories, and their pull requests.

import type { Diagnosis } from '../../agent/define.ts'
import type { Worktree } from './worktree.ts'

/** A code host and the account on it. */
export interface CodeHost {
  /** The host name in the remotes of its repositories. */
  host: string
  login: { user: string; password: string; setting: string }
  remote: string
  base: string | undefined
  draft: boolean
  find(tree: Worktree): Promise<PullRequest | null>
  open(tree: Worktree, pull: { title: string; body: string; draft: boolean }): Promise<PullRequest>
  /** Adds the reviewers and labels that the pull request lacks. */
  complete(tree: Worktree, pull: PullRequest): Promise<void>
  examine(): Promise<Diagnosis>
}

export interface PullRequest {
  number: number
  url: string
  /** The commit of its branch; may be abbreviated. */
  commit: string
  reviewers: readonly string[]
}

/** What a pull request should have besides its title and body. */
export interface Wishes {
  reviewers: readonly string[]
  labels: readonly string[]
}

/** The host of the repositories that belong to an API: the API's host without a leading `api.`. */
export function repositoriesOf(base: string): string {
  return new URL(base).hostname.replace(/^api\./, '')
}
