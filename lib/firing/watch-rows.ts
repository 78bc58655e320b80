// Files that differ from what a watch has seen, as firings have them: their names, what expressions see of them, and what
// is seen of them afterwards. Pure.

import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { JsonObject } from '../json.ts'
import { fileOf, type Stat } from '../triggers/watch/scan.ts'
import type { Watched } from '../triggers/watch/words.ts'
import type { Firing, Trigger } from './trigger.ts'

/** What was seen of a file. */
export interface Seen {
  identity: Stat
  sha256: string | null
  /** Since when it is not there; null while it is. */
  gone_at: number | null
  /** When it was last reported, the oldest first. */
  reported: readonly number[]
}

/** What is in the folder of a watch now, and what was seen of it. */
export interface There {
  root: string
  files: ReadonlyMap<string, Pick<Seen, 'identity' | 'sha256'>>
  seen: ReadonlyMap<string, Seen>
}

/** Most files of one firing. */
export const MOST_TOGETHER = 1_000
const HOUR_MS = 3_600_000
/** A file that is reported more often within an hour is one that the team writes itself. */
const MOST_AN_HOUR = 10

/** A file that differs. `what` is null where nothing happened to it that anybody would call a change. */
export interface Difference extends Pick<Seen, 'identity' | 'sha256'> {
  path: string
  what: Watched | null
  reported: readonly number[]
}

/** What was seen of a file that was there; null of one that was not. */
export const stateOf = (seen: Seen | undefined): Stat | null =>
  seen === undefined || seen.gone_at !== null ? null : seen.identity

/** `identity` is null where the file is gone, and `sha256` where nobody asks for it. */
export function differenceOf(
  path: string,
  { identity, sha256 }: { identity: Stat | null; sha256: string | null },
  seen: Seen | undefined,
): Difference {
  const reported = seen?.reported ?? []
  if (identity === null) {
    return { path, what: 'removed', identity: seen!.identity, sha256: seen!.sha256, reported }
  }
  const isSame = seen !== undefined && (seen.identity === identity || (sha256 !== null && seen.sha256 === sha256))
  const what = isSame ? null : stateOf(seen) === null ? 'added' : 'changed'
  return { path, what, identity, sha256, reported }
}

/** What differs of all files, by path: a folder has no order of its own. */
export function differences({ files, seen }: Pick<There, 'files' | 'seen'>): Difference[] {
  const found = Array.from(files)
    .filter(([path, { identity }]) => stateOf(seen.get(path)) !== identity)
    .map(([path, now]) => differenceOf(path, now, seen.get(path)))
  const gone = Array.from(seen)
    .filter(([path, each]) => each.gone_at === null && !files.has(path))
    .map(([path, each]) => differenceOf(path, { identity: null, sha256: null }, each))
  return [...found, ...gone].sort((one, other) => (one.path < other.path ? -1 : 1))
}

/** `isReport`: a firing reports it now. */
export const seenAfter = ({ what, identity, sha256, reported }: Difference, now: number, isReport = false): Seen => ({
  ...{ identity, sha256, gone_at: what === 'removed' ? now : null },
  reported: isReport ? [...lately(reported, now), now].slice(-MOST_AN_HOUR - 1) : reported,
})

const lately = (reported: readonly number[], now: number): number[] =>
  reported.filter(at => at <= now && now - at < HOUR_MS)

/** Whether a file was reported so often that it seems to be a part of what the run writes. `more`: it is about to be. */
export const isStorm = (reported: readonly number[], now: number, more = 0): boolean =>
  lately(reported, now).length + more > MOST_AN_HOUR

export function groupsOf<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size))
}

/** What names files among all occasions: the file and its version, or the hash of several. */
export function occasionOf(root: string, group: readonly Difference[]): string {
  const names = group.map(
    ({ path, what, identity, sha256 }) =>
      `${join(root, path)}@${what === 'removed' ? 'removed-' : ''}${sha256 ?? identity}`,
  )
  const [only, second] = names
  if (only !== undefined && second === undefined) return only
  return `files:${createHash('sha256').update(names.sort().join('\n')).digest('hex')}`
}

export const variablesOf = (root: string, group: readonly Difference[]): JsonObject => ({
  files: group.map(({ path, identity, sha256 }) => fileOf(root, path, identity, sha256)),
})

/** A firing that waits for what becomes of it. */
export const firingOf = (
  { id, revision }: Pick<Trigger, 'id' | 'revision'>,
  root: string,
  group: readonly Difference[],
  now: number,
): Firing => ({
  ...{ id: Bun.randomUUIDv7(), trigger_id: id, revision, occasion: occasionOf(root, group), at: now, until: null },
  ...{ seen_at: now, started_at: null, state: 'waiting', reason: null, detail: null, run_id: null },
  ...{ count: group.length, late_ms: null, manual: null, deliveries: null, variables: variablesOf(root, group) },
})
