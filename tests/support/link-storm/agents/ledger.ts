// The agent of the storm: an entry of a ledger outside, which is written once and can be looked for.

import { AgentError, agent, entryOf, Type } from 'cadre'

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'A ledger whose entries are counted.',
  settings: Type.Object({ url: Type.String() }),
  actions: {
    write: {
      direction: 'target',
      effect: 'once',
      entry: entryOf({}),
      async run(_, { key, run, settings, fetch }) {
        const reply = await fetch(`${settings.url}/${run.id}`, { method: 'POST', body: key, timeout: 5_000 })
        if (!reply.ok) throw new AgentError(`HTTP ${reply.status}`, { sent: 'unknown' })
        return { text: 'written', data: {}, external: { id: key } }
      },
      async find(_, { key, run, settings, fetch }) {
        const { status } = await fetch(`${settings.url}/${run.id}?key=${key}`)
        if (status !== 200 && status !== 404) throw new AgentError(`HTTP ${status}`)
        return status === 404 ? null : { text: 'found', data: {}, external: { id: key } }
      },
    },
  },
})
