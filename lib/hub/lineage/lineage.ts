// Whether the database is the one that this hub had before, and has all of its commits: the `Lineage` of a hub. A hub on an
// older copy holds the jobs that waited in it.

import type { Lineage } from '../core/hub.ts'
import { CommitCounts } from './commit-counts.ts'
import { DatabaseIdentity } from './database-identity.ts'
import { type LineageParts, OlderCopies } from './older-copies.ts'

/** How often a hub notes that it runs, and how much it has committed. */
const HEARTBEAT_MS = 10_000

export function createLineage(parts: LineageParts): Lineage {
  const { store, lived } = parts
  const copies = new OlderCopies(parts)
  const identity = new DatabaseIdentity(parts, copies)
  const counts = new CommitCounts(parts, identity, copies)
  return {
    async open() {
      await identity.recognize()
      await copies.open()
      try {
        await identity.renewMark()
        await identity.heartbeat()
        await copies.releaseJobs()
      } catch (error) {
        // A full disk keeps no hub from answering what it can.
        copies.warn(error)
      }
    },
    async check() {
      if (identity.row === null) return
      if (store.dialect === 'postgres') await identity.check()
      // A command, or another hub, may have changed something.
      if (store.dialect === 'postgres' || copies.isOlderCopy) await copies.read()
      if (lived() - identity.heartbeatAt >= HEARTBEAT_MS) await identity.heartbeat()
      if (copies.isOlderCopy || lived() - copies.releasedAt >= HEARTBEAT_MS) await copies.releaseJobs()
    },
    async close() {
      if (identity.row === null) return
      await identity.leave().catch(error => copies.warn(error))
    },
    get isOlderCopy() {
      return copies.isOlderCopy
    },
    get unknownDaemons() {
      return copies.unknownDaemons
    },
    replyTo: daemon => counts.replyTo(daemon),
    compareCount: (daemon, seen) => counts.compare(daemon, seen),
    recordFullReport: (tx, daemon, copyId) => copies.recordFullReport(tx, daemon, copyId),
    applyConfirmations: () => copies.applyConfirmations(),
    noteUnknownToken: daemonId => copies.noteUnknownToken(daemonId),
    doubtAt: (realmId, at) => copies.doubtAt(realmId, at),
    awaitsDaemon: daemonId => copies.awaitsDaemon(daemonId),
    awaitedDaemons: job => copies.awaitedDaemons(job),
    notice: () => copies.notice(),
  }
}
