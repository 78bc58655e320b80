// Lines of the log of a run, in their order. A line may be large, so their sizes are looked at before they are read.

import { and, asc, desc, eq, gt, lte, sql } from 'drizzle-orm'
import type { Store } from '../../../db/hub/store.ts'
import { REPLY_BYTES, within } from '../../wire/budget.ts'
import type { LogLine } from '../../wire/records/run-records.ts'

/** What a line has beside its text, and the escapes of its JSON, in bytes. */
const FRAME = 200

/** The lines after number `after`, at most `limit`, and no more than fit into a reply: those of one phase, if it is given. */
export async function readLinesAfter({ logs, db }: Store, runId: string, after: number, limit: number, phase?: string) {
  const ofPhase = phase === undefined ? undefined : eq(logs.phase, phase)
  const ofRun = and(eq(logs.run_id, runId), gt(logs.seq, after), ofPhase)
  const bytes = sql<number>`octet_length(${logs.text})`.mapWith(Number)
  const sizes = await db.select({ seq: logs.seq, bytes }).from(logs).where(ofRun).orderBy(asc(logs.seq)).limit(limit)
  const last = within(sizes, each => each.bytes + FRAME, REPLY_BYTES).at(-1)
  if (!last) return []
  const lines = await db
    .select({ seq: logs.seq, phase: logs.phase, at: logs.at, stream: logs.stream, text: logs.text })
    .from(logs)
    .where(and(ofRun, lte(logs.seq, last.seq)))
    .orderBy(asc(logs.seq))
  return within(lines.map(line => ({ ...line, stream: streamOf(line.stream) })))
}

/** The last lines, as many of them as fit into a reply. */
export async function readLastLines(store: Store, runId: string, limit: number, phase?: string) {
  const { logs, db } = store
  const ofPhase = phase === undefined ? undefined : eq(logs.phase, phase)
  const bytes = sql<number>`octet_length(${logs.text})`.mapWith(Number)
  const sizes = await db
    .select({ seq: logs.seq, bytes })
    .from(logs)
    .where(and(eq(logs.run_id, runId), ofPhase))
    .orderBy(desc(logs.seq))
    .limit(limit)
  const first = within(sizes, each => each.bytes + FRAME, REPLY_BYTES).at(-1)
  return first ? readLinesAfter(store, runId, first.seq - 1, limit, phase) : []
}

/** A newer daemon may have streams that this program does not know. */
const streamOf = (text: string): LogLine['stream'] => (text === 'stdout' || text === 'stderr' ? text : 'log')
