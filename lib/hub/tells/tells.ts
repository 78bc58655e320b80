// What the accounts of a realm (`notify.on_fail`) are told: it is written in the transaction of what it is about, and is a
// job of kind `tell` for a daemon that has the account. Where none is online, the webhooks of the realm are all.

import { and, count, eq, gt, isNull } from 'drizzle-orm'
import { prepared, type Slot } from '../../../db/hub/prepared.ts'
import type { Tables } from '../../../db/hub/schema.ts'
import { afterCommit, type Db } from '../../../db/hub/store.ts'
import { matches } from '../../schema/schema.ts'
import { DeliveryRecord } from '../../wire/records/run-records.ts'
import { ACCOUNT_OF_HOME, eventText } from '../../wire/records/words.ts'
import type { Hub } from '../core/hub.ts'
import { unreached } from './accounts.ts'

type RunRow = Tables['runs']['$inferSelect']

export interface News {
  /** A whole sentence. */
  text: string
  /** The id of the run or the trigger that it is about, of which an account hears only so often. */
  subject: string
  /** The same for what may come twice. */
  once: string
  /** When it happened, in epoch milliseconds. Null: now. */
  at: number | null
  /** Whether the account has heard of it already. */
  isTold?(account: string): boolean
}

const HOUR_MS = 3_600_000
/** How often an account hears of one subject. */
const MOST_AN_HOUR = 20
/** What has not ended, of one realm. Where more happens, people look at the lists. */
const MOST_OPEN = 500
const MOST_TEXT = 4_000

/** Asks for news to be told. */
export async function tellRealm(hub: Hub, tx: Db, realmId: string, news: readonly News[]): Promise<void> {
  if (news.length === 0) return
  const { store, lived, clock, lineage } = hub
  const accounts = (await notifyOf(store, tx, { realmId }))[0]?.notify?.on_fail ?? []
  if (accounts.length === 0) return
  const absent = await unreached(hub, tx, realmId, accounts)
  const { tells } = store
  const ended = (state: 'failed' | 'unknown', error: string) => ({ state, error, finished_at: clock.keptSince() })
  let open = (await openTells(store, tx, { realmId }))[0]?.n ?? 0
  for (const { text, subject, once, at, isTold } of news) {
    const isOld = at !== null && lineage.doubtAt(realmId, at) !== null
    for (const account of accounts) {
      if (isTold?.(account)) continue
      const since = lived() - HOUR_MS
      const told = (await toldSince(store, tx, { realmId, subject, account, since }))[0]!.n
      if (told >= MOST_AN_HOUR || open >= MOST_OPEN) continue
      const last = told === MOST_AN_HOUR - 1 ? '; what else happens of it within the hour is not told' : ''
      const end = isOld
        ? ended('unknown', 'it happened before the hub was found to be on an older copy, and may have been told')
        : absent.includes(account)
          ? ended('failed', 'no daemon that is online has this account')
          : { state: 'waiting' as const }
      const row = {
        id: crypto.randomUUID(),
        realm_id: realmId,
        account,
        subject,
        once,
        deliveries: 0,
        created_at: lived(),
      }
      await tx
        .insert(tells)
        .values({ ...row, text: (text.toWellFormed() + last).slice(0, MOST_TEXT), ...end })
        .onConflictDoNothing()
      open++
    }
  }
  afterCommit(tx, () => hub.notifier.notify(`realm ${realmId}`))
}

const notifyOf = prepared(({ realms }, db, slot: Slot<'realmId'>) =>
  db
    .select({ notify: realms.notify })
    .from(realms)
    .where(eq(realms.id, slot('realmId'))),
)

const openTells = prepared(({ tells }, db, slot: Slot<'realmId'>) =>
  db
    .select({ n: count() })
    .from(tells)
    .where(and(eq(tells.realm_id, slot('realmId')), isNull(tells.finished_at))),
)

const toldSince = prepared(({ tells }, db, slot: Slot<'realmId' | 'subject' | 'account' | 'since'>) =>
  db
    .select({ n: count() })
    .from(tells)
    .where(
      and(
        eq(tells.realm_id, slot('realmId')),
        eq(tells.subject, slot('subject')),
        eq(tells.account, slot('account')),
        gt(tells.created_at, slot('since')),
      ),
    ),
)

type FailedRun = Pick<RunRow, 'run_id' | 'run_name' | 'team' | 'state' | 'attempt' | 'error' | 'started_by'> &
  Pick<RunRow, 'completed_at' | 'deliveries'>

/** Tells of the top runs among `runs` that failed and of which no listener of their team tells. */
export async function tellOfRuns(hub: Hub, tx: Db, realmId: string, runs: readonly FailedRun[]): Promise<void> {
  const failed = runs.filter(({ state }) => state === 'failed')
  const news = failed.flatMap(({ run_id, attempt, completed_at, deliveries, ...run }): News[] => {
    const events = (deliveries ?? []).flatMap(each =>
      matches(DeliveryRecord, each) && each.event === 'on_fail' ? each.phase : [],
    )
    if (events.some(phase => !phase.startsWith(ACCOUNT_OF_HOME))) return []
    return [
      {
        text: eventText({ run_id, ...run }, run.error),
        ...{ subject: run_id, once: `${run_id} ${attempt}`, at: completed_at },
        // The home that executed the run has told the same account.
        isTold: account => events.includes(ACCOUNT_OF_HOME + account),
      },
    ]
  })
  await tellRealm(hub, tx, realmId, news)
}
