// The version of this program: its number, and the commit that it was made of. This is the only place that knows them.

import manifest from '../../package.json'
import { carried } from './carried.ts'
import { headCommit } from './head-commit.mjs'
import { ROOT } from './install-root.ts'
import stamp from './stamp.json'

export const { version } = manifest

let found: string | null | undefined

/**
 * The commit: of HEAD in a clone, else the one with which the package or program was stamped (stamp.json), else null. It
 * is read when somebody asks, so that no start waits for it.
 */
export function commit(): string | null {
  if (found === undefined) found = (carried ? null : headCommit(ROOT)) ?? stamped(stamp.commit)
  return found
}

const stamped = (text: string): string | null => (/^[0-9a-f]{40,64}$/.test(text) ? text : null)

/** Both, as replies and metrics name them. */
export const build = (): { version: string; commit: string | null } => ({ version, commit: commit() })

/** `0.1.0 (3f2a…)`; only the number where nobody knows the commit. */
export function versionText(): string {
  const known = commit()
  return known === null ? version : `${version} (${known})`
}
