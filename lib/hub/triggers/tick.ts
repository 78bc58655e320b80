// Looks at the schedules of all realms that are due, and at firings whose turn has come. Each hub does so every second; no
// timer is the truth and there is no leader: the transaction that fires a trigger reads its cursor, and the key of the
// firing is unique. The time is that of the database, so the clocks of hubs do not matter.

import { CadreError, messageOf } from '../../error.ts'
import type { Firing } from '../../firing/trigger.ts'
import type { Hub } from '../core/hub.ts'
import { maySoonBeACopy, passOverCopies, wasJustFound } from './copied.ts'
import { type Allowance, fire, type Occasion } from './fire.ts'
import { unjudgedOf, waitingOf } from './firing-table.ts'
import { asItsKind, inRealm } from './in-realm.ts'
import { type Look, takeTrigger, toLookAt } from './trigger-table.ts'

/** How many triggers are judged at once. Those of SQLite share commits, and more on PostgreSQL undo each other. */
const TOGETHER = { sqlite: 8, postgres: 2 }
/** How many firings of a trigger that wait are judged in one look, which is one transaction. */
const MOST_JUDGED = 50

/** One look. Nothing that one trigger fails with keeps the others from their turn. */
export async function tick(hub: Hub): Promise<void> {
  const all = await toLookAt(hub)
  if (all.length === 0 || (await maySoonBeACopy(hub))) return
  await hub.runIds.look()
  // What waits comes before what is due, so that it is not overtaken.
  const unfinished = new Set<string>()
  const startWaiting: Work = async (look, allowance) => {
    if (!(await startSome(look, allowance))) unfinished.add(look.trigger.id)
  }
  await eachOf(
    hub,
    all.filter(({ waits }) => waits),
    startWaiting,
  )
  await eachOf(
    hub,
    all.filter(({ id, waits }) => !waits && !unfinished.has(id)),
    judge,
  )
}

type Work = (look: Look, allowance: Allowance) => Promise<void>

async function eachOf(hub: Hub, all: readonly { id: string }[], work: Work): Promise<void> {
  const left = all.map(({ id }) => id)
  const next = async () => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) await alone(hub, id, work)
  }
  await Promise.all(Array.from({ length: Math.min(TOGETHER[hub.store.dialect], left.length) }, next))
}

async function alone(hub: Hub, id: string, work: Work): Promise<void> {
  try {
    const allowance = { queued: 0, most: Number.POSITIVE_INFINITY, why: '' }
    await inTransaction(hub, id, work, allowance).catch(async error => {
      // The transaction that counted one run too many is undone. The same again, where the others wait until there is room.
      if (!(error instanceof CadreError) || error.code !== 'rate_limited') throw error
      await inTransaction(hub, id, work, { queued: 0, most: allowance.queued, why: error.message })
    })
  } catch (error) {
    // The next look tries again.
    hub.log.warn('a trigger could not be looked at', { trigger: id, error: messageOf(error).split('\n', 1)[0] })
  }
}

async function inTransaction(hub: Hub, id: string, work: Work, allowance: Allowance): Promise<void> {
  const realm = await hub.store.write(async tx => {
    // It may be tried more than once.
    allowance.queued = 0
    const taken = await takeTrigger(hub, tx, id, { claimed: true })
    if (!taken?.trigger.enabled || taken.trigger.paused) return null
    // This transaction may be the one that has found a copy.
    const look: Look = { ...taken, hub, tx }
    if (await wasJustFound(look)) return null
    await work(await passOverCopies(look), allowance)
    return taken.realm.id
  })
  if (realm !== null) hub.notifier.notify(`realm ${realm}`)
}

const judge: Work = async (look, allowance) => inRealm(look.trigger).judge?.(look, allowance)

/**
 * Starts what waits, the oldest first, until one has to go on waiting; what nobody has judged before is judged all the same,
 * because it may have to give way. Returns false when the next look has to go on, because that many were judged.
 */
async function startSome(look: Look, allowance: Allowance): Promise<boolean> {
  const { hub, tx, trigger } = look
  const isHeld = async (known: Firing): Promise<boolean> => {
    const { state } = await fire(look, occasionAgain(look, known), { ...asItsKind(look), known, allowance })
    return state === 'waiting'
  }
  for (let left = MOST_JUDGED; left > 0; left--) {
    const [first] = await waitingOf(hub.store, tx, trigger.id, 1)
    if (!first) return true
    if (!(await isHeld(first))) continue
    const behind = await unjudgedOf(hub.store, tx, trigger.id, left)
    for (const known of behind) await isHeld(known)
    return behind.length < left
  }
  return false
}

/** A firing that waited, as it starts now. */
function occasionAgain(look: Look, firing: Firing): Occasion {
  const { occasion, at, late_ms, seen_at, manual, variables } = firing
  // It was late by then already, or due with a delay of its own.
  const late = (late_ms ?? 0) + Math.max(0, look.now - seen_at)
  const more = async () => (await inRealm(look.trigger).values?.(look, firing)) ?? {}
  return { occasion, at, late_ms: late, manual, variables, isLater: true, more }
}
