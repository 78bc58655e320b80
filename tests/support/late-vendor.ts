// A vendor of tickets on a driven clock: it may lose its reply, write later than it answers, and show a write in its
// search only after some looks. An agent writes to it, and looks for what it wrote by the idempotency key.

import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import type { Agent } from '../../lib/agent/define.ts'
import type { DrivenClock } from '../../lib/testing/driven-clock.ts'

export interface Fate {
  /** `lost` after the last byte; `refused` writes nothing, and says so. */
  reply?: 'ok' | 'lost' | 'refused'
  /** Milliseconds after the request at which the ticket is there; never when null. */
  lands?: number | null
  /** How many looks do not show it yet. */
  hidden?: number
}

export interface Ticket {
  id: string
  key: string
  title: string
  hidden: number
}

export interface LateVendor {
  tickets: Ticket[]
  /** How many requests arrived, and how many looks. */
  sends: number
  looks: number
  /** What becomes of the next requests, in order; of others nothing bad. */
  fates: Fate[]
  /** What the next looks throw, in order; null for none. */
  faults: (AgentError | null)[]
  agent: Agent
}

const Entry = Type.Object({ name: Type.String(), title: Type.String() })

export function lateVendor(clock: DrivenClock, { settles, list = true }: { settles?: string; list?: boolean } = {}) {
  const vendor: LateVendor = { tickets: [], sends: 0, looks: 0, fates: [], faults: [], agent: undefined as never }
  const told = ({ id, title }: Ticket) => ({ text: title, data: { id }, external: { id, url: `http://tickets/${id}` } })
  const run = async ({ title }: { title: string }, { key }: { key: string }) => {
    const number = ++vendor.sends
    const { reply = 'ok', lands = 0, hidden = 0 } = vendor.fates.shift() ?? {}
    const ticket = { id: `T-${number}`, key, title, hidden }
    if (reply === 'refused') throw new AgentError('refused', { retryable: true, sent: 'no' })
    if (lands === 0) vendor.tickets.push(ticket)
    else if (lands !== null) void clock.pause(lands).then(() => vendor.tickets.push(ticket))
    if (reply === 'lost') throw new AgentError('HTTP 504', { retryable: true })
    return told(ticket)
  }
  const find = async (_: unknown, { key }: { key: string }) => {
    vendor.looks++
    const fault = vendor.faults.shift()
    if (fault) throw fault
    const mine = vendor.tickets.filter(ticket => ticket.key === key && ticket.hidden-- <= 0)
    return mine.length === 0 ? null : list ? mine.map(told) : told(mine[0]!)
  }
  const create = { direction: 'target', effect: 'once', entry: Entry, run } as const
  vendor.agent = agent({
    type: 'connector',
    version: '1.0.0',
    description: 'Writes tickets that nobody wants twice.',
    settings: Type.Object({}),
    actions: {
      create: { ...create, find, ...(settles !== undefined && { settles }) },
      sure: { ...create, find, sees: 'at once' },
      blind: create,
    },
  })
  return vendor
}
