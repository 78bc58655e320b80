// What a home does of a watch when a person changes it, and before a run has its files.

import { CadreError, isLasting, messageOf } from '../../error.ts'
import type { RunId } from '../../files/run-id.ts'
import { Changed, pausedText } from '../../firing/changes.ts'
import { filesIn } from '../../firing/watch-kind.ts'
import {
  differences,
  firingOf,
  groupsOf,
  MOST_TOGETHER,
  type Seen,
  seenAfter,
  type There,
} from '../../firing/watch-rows.ts'
import { digestOf, rootOf, scan } from '../../triggers/watch/scan.ts'
import type { WatchSpec } from '../../triggers/watch/spec.ts'
import { isOfCopy } from '../home/copied-triggers.ts'

import { type AtHome, MAY_HAVE_STARTED } from './at-home.ts'
import type { Tables } from './tables.ts'
import { claimFor, takeFiles } from './watch-claim.ts'

export const watch: AtHome<WatchSpec> = {
  there: ({ tables }, { id, spec }) => whatIsThere(tables, id, spec.own),

  added({ tables: { watches } }, { id, spec }, _, there) {
    if (there && !spec.own.initial) watches.replace(id, there.files)
  },

  beforeNow({ tables: { watches } }, { id }, _, there) {
    if (there) watches.replace(id, there.files)
  },

  /** What came, changed or went meanwhile starts nothing, unless a person fires it again. */
  resumed({ tables }, trigger, { now, there }) {
    if (!there) return
    const { id, spec, paused } = trigger
    const all = differences(there)
    for (const each of all) tables.watches.put(id, each.path, seenAfter(each, now))
    const isCopy = isOfCopy(paused)
    const because = isCopy
      ? ({ reason: 'copy', detail: MAY_HAVE_STARTED } as const)
      : ({ reason: 'paused', detail: pausedText(trigger) } as const)
    const counted = all.filter(({ what }) => what !== null && spec.own.on.includes(what))
    const size = isCopy || counted.length > MOST_TOGETHER ? MOST_TOGETHER : 1
    for (const group of groupsOf(counted, size)) {
      const firing = firingOf(trigger, there.root, group, now)
      // The copy of a home has the occasions of the other one, and may pass over the same files twice.
      if (tables.firings.of(id, firing.occasion)) continue
      tables.firings.insert({ ...firing, state: 'skipped', ...because })
    }
  },

  async ready({ daemon, tables: { firings, watches } }, { spec: { own } }, firing, variables) {
    const files = filesIn(variables)
    if (!own.claim || files.length === 0) return null
    const known = watches.claimOf(firing.id)
    if (known) {
      if (firings.get(firing.id)?.state !== 'waiting') throw new Changed(`${firing.occasion} waits no more`)
      const lost = await takeFiles(known)
      return lost === null ? { runId: known.run_id as RunId } : { state: 'refused', reason: 'inputs', detail: lost }
    }
    const runId = daemon.engine.store.runs.newId()
    const claimed = claimFor(await rootOf(own), runId, files)
    const moved = files.map((file, at) => ({ ...file, path: claimed[at]!.to }))
    const write = () => watches.claim({ firing_id: firing.id, run_id: runId, files: claimed })
    return { runId, begin: { variables: { files: moved }, write } }
  },

  settled({ tables: { watches } }, { id, state }) {
    if (state === 'started') watches.unclaim(id)
  },

  newest({ tables: { firings } }, { id }) {
    const newest = firings
      .list({ trigger_id: id }, { limit: LOOKED_BACK, offset: 0 })
      .find(({ variables }) => filesIn(variables).length > 0)
    return newest ? { files: filesIn(newest.variables) } : {}
  },
}

/** What is in the folder of a watch now. Throws `invalid_request` when that cannot be seen. */
export async function whatIsThere({ watches }: Pick<Tables, 'watches'>, id: string, own: WatchSpec): Promise<There> {
  try {
    const { root, files } = await scan(own)
    const found: [string, Pick<Seen, 'identity' | 'sha256'>][] = []
    for (const [path, identity] of files) {
      const sha256 = own.identity === 'sha256' ? await digestOf(own, path, identity) : null
      // One that changes meanwhile does not rest, and is reported once it does.
      if (own.identity === 'stat' || sha256 !== null) found.push([path, { identity, sha256 }])
    }
    return { root, files: new Map(found), seen: await watches.seen(id) }
  } catch (error) {
    if (!isLasting(error)) throw error
    const message = messageOf(error)
    throw new CadreError('invalid_request', message, { details: [{ path: '/folder', message }], cause: error })
  }
}

/** How many firings are looked at for the newest that has files. */
const LOOKED_BACK = 20
