// What webhooks and accounts of a realm are told of its triggers: an occasion that was refused and a trigger that is broken,
// and webhooks also the first occasion that was skipped after one that was not.

import { and, eq, ne } from 'drizzle-orm'
import { brokenText, isTold, refusedText } from '../../firing/news.ts'
import type { Firing } from '../../firing/trigger.ts'
import { tellRealm } from '../tells/tells.ts'
import { queueMessages } from '../webhooks/webhooks.ts'
import { newestFirings } from './firing-table.ts'
import type { Look } from './trigger-table.ts'

/** Called before the firing is written, or written anew. */
export async function tellOfFiring(look: Look, firing: Firing): Promise<void> {
  const { hub, tx, trigger } = look
  if (isTold(firing)) await tell(look, refusedText(trigger, firing))
  const event = await eventOf(look, firing)
  if (event === null) return
  const { id: firing_id, occasion, at, until, count, state, reason, detail } = firing
  const of = { firing_id, occasion, at, until, count, state, reason, detail }
  await queueMessages(hub, tx, trigger.realm_id, [{ event, subject: trigger.id, data: { ...dataOf(look), ...of } }])
}

async function tell({ hub, tx, trigger: { id: subject, realm_id } }: Look, text: string): Promise<void> {
  await tellRealm(hub, tx, realm_id, [{ text, subject, once: crypto.randomUUID(), at: null }])
}

async function eventOf({ hub, tx, trigger }: Look, { id, state, reason }: Firing) {
  if (state === 'refused' || (state === 'skipped' && reason === 'limit')) return 'trigger.refused'
  if (state !== 'skipped' || !isPassed(reason)) return null
  const { store } = hub
  const { firings } = store
  const before = await newestFirings(store, tx, and(eq(firings.trigger_id, trigger.id), ne(firings.id, id))!, 1)
  return before.some(last => last.state === 'skipped' && isPassed(last.reason)) ? null : 'trigger.skipped'
}

const isPassed = (reason: Firing['reason']): boolean => reason === 'overlap' || reason === 'missed'

/** Tells that a trigger is broken. */
export async function tellOfProblem(
  look: Look,
  problem: { reason: string; text: string; since: number },
): Promise<void> {
  const { hub, tx, trigger } = look
  const data = { ...dataOf(look), problem }
  await queueMessages(hub, tx, trigger.realm_id, [{ event: 'trigger.broken', subject: trigger.id, data }])
  await tell(look, brokenText(trigger, problem))
}

const dataOf = ({ trigger: { id, name, kind, realm_id, spec }, owner }: Look) => ({
  ...{ trigger_id: id, name, kind, realm_id, team: spec.team, owner: owner.username },
})
