// A vendor of tickets on a driven clock: it may lose its reply, write later than it answers, and show a write in its
// search only after some looks. An agent writes to it, and looks for what it wrote by the idempotency key.

import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import type { Agent } from '../../lib/agent/define.ts'
import type { DrivenClock } from '../../lib/testing/driven-clock.ts'

export interface Fate {
  /** `lost` after the last byte; `hung` until the call is stopped; `refused` writes nothing, and says so. */
  reply?: 'ok' | 'lost' | 'hung' | 'refused'
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
  /** What becomes of requests after those. */
  fate: () => Fate
  /** The keys of writes that were asked for and are not there yet. */
  coming: Map<string, number>
  /** Nothing reaches it: who calls counts as killed. */
  deaf: boolean
  /** Whether a look is refused for now. */
  fault: () => boolean
  /** What the next looks throw, in order; null for none. */
  faults: (AgentError | null)[]
  agent: Agent
  /** Gets the messages of listeners. */
  told: (message: string) => void
}

const Entry = Type.Object({ name: Type.String(), title: Type.String() })

export function lateVendor(clock: DrivenClock, { settles, list = true }: { settles?: string; list?: boolean } = {}) {
  const vendor: LateVendor = {
    ...{ tickets: [], sends: 0, looks: 0, fates: [], faults: [], coming: new Map(), deaf: false },
    ...{ agent: undefined as never, told() {}, fate: () => ({}), fault: () => false },
  }
  const land = async (ticket: Ticket, after: number) => {
    const { coming } = vendor
    coming.set(ticket.key, (coming.get(ticket.key) ?? 0) + 1)
    await clock.pause(after)
    vendor.tickets.push(ticket)
    const left = coming.get(ticket.key)! - 1
    if (left > 0) coming.set(ticket.key, left)
    else coming.delete(ticket.key)
  }
  const told = ({ id, title }: Ticket) => ({ text: title, data: { id }, external: { id, url: `http://tickets/${id}` } })
  const run = async ({ title }: { title: string }, { key, signal }: { key: string; signal: AbortSignal }) => {
    if (vendor.deaf) throw new AgentError('killed')
    const number = ++vendor.sends
    const { reply = 'ok', lands = 0, hidden = 0 } = vendor.fates.shift() ?? vendor.fate()
    const ticket = { id: `T-${number}`, key, title, hidden }
    if (reply === 'refused') throw new AgentError('refused', { retryable: true, sent: 'no' })
    if (lands === 0) vendor.tickets.push(ticket)
    else if (lands !== null) void land(ticket, lands)
    if (reply === 'lost') throw new AgentError('HTTP 504', { retryable: true })
    if (reply === 'hung') {
      await new Promise(stopped => signal.addEventListener('abort', stopped))
      throw new AgentError('stopped')
    }
    return told(ticket)
  }
  const find = async (_: unknown, { key }: { key: string }) => {
    if (vendor.deaf) throw new AgentError('killed')
    vendor.looks++
    const fault = vendor.faults.shift()
    if (fault) throw fault
    if (vendor.fault()) throw new AgentError('HTTP 503', { retryable: true })
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
    notify: {
      effect: 'idempotent',
      entry: Type.Object({ message: Type.Optional(Type.String()) }),
      async run({ message }, context) {
        vendor.told(message ?? context.event!.message)
        return { text: 'told' }
      },
    },
  })
  return vendor
}
