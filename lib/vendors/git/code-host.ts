// The interface of a code host that the git agent needs: the location of its repositories, and their pull requests.

import type { Diagnosis } from '../../agent/define.ts'
import type { Worktree } from './worktree.ts'

/** A code host and the account on it. */
export interface CodeHost {
  /** The host name in the remotes of its repositories. */
  host: string
  login: { user: string; password: string; setting: string }
  remote: string
  /** The remote of a fork, to which branches are pushed. */
  pushTo: string | undefined
  base: string | undefined
  draft: boolean
  /** The open pull requests for the branch, the oldest first. */
  find(tree: Worktree): Promise<PullRequest[]>
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

/** How people know the root of an API. */
export interface Roots {
  /** Roots by the addresses of web pages, without a slash at their end. */
  known: Readonly<Record<string, string>>
  /** The end of a root that has a path. */
  path: string
}

/** The root of an API, from an address that people know it by; null for the address of a repository or another page. */
export function apiRoot(given: string, { known, path }: Roots): string | null {
  const plain = given.replace(/\/+$/, '')
  const pathname = URL.parse(plain)?.pathname
  return known[plain] ?? (pathname === '/' || pathname?.endsWith(path) ? plain : null)
}

/** What is wrong with such an address, in words that continue the name of the setting; null if nothing is. */
export function whyNoRoot(given: string, roots: Roots): string | null {
  if (apiRoot(given, roots) !== null) return null
  const origin = URL.parse(given)?.origin
  const instead = origin ? (roots.known[origin] ?? origin + roots.path) : 'it as https://code.acme.com'
  return `must be the root of the API, not a page: write ${instead}`
}

/** The host of the repositories that belong to an API: the API's host without a leading `api.`. */
export function repositoriesOf(base: string): string {
  return new URL(base).hostname.replace(/^api\./, '')
}
