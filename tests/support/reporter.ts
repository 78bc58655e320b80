// A daemon of a realm as the hub sees it: it reports runs with runs/sync, and executes nothing.

import type { TestHub } from './hub.ts'
import { runChange } from './sync.ts'

export async function reporter(hub: TestHub, name = 'reporter', realm_id = hub.realm) {
  const { token } = await hub.realmToken(hub.admin, realm_id)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name })
  let epoch = crypto.randomUUID() as string
  let seq = 0
  let last: object | null = null
  const send = async (changes: readonly object[]): Promise<void> => {
    const from_seq = seq + 1
    const numbered = changes.map(change => ({ ...change, seq: ++seq }))
    last = { protocol: 1, daemon_id, epoch, from_seq, changes: numbered }
    const { rejected } = await hub.ok(token, 'runs/sync', last)
    if (rejected.length > 0) throw new Error(`rejected: ${JSON.stringify(rejected)}`)
  }
  const over = (run: object) => ({ state: 'completed', started_at: Date.now(), completed_at: Date.now(), ...run })
  const self = {
    ...{ token, daemon_id, send },
    /** A top run that goes on, unless `run` says something else. Returns its id. */
    async begun(run: object): Promise<string> {
      const run_id = Bun.randomUUIDv7()
      await send([runChange(run_id, { started_at: Date.now(), ...run })])
      return run_id
    },
    /** The same with its end. */
    async ended(run: object): Promise<string> {
      const run_id = await self.begun(run && { ...run, state: 'running', error: null, outputs: null })
      return self.end(run_id, run)
    },
    async end(run_id: string, run: object, attempt = 1): Promise<string> {
      await send([runChange(run_id, over(run), attempt)])
      return run_id
    },
    /** The last batch once more, as after a lost reply. */
    repeat: () => hub.ok(token, 'runs/sync', last!),
    /** A new outbox, which reports these ends again. */
    async anew(runs: readonly (readonly [string, object])[]): Promise<void> {
      epoch = crypto.randomUUID()
      seq = 0
      const stored = await Promise.all(runs.map(([run_id]) => hub.ok(hub.admin, 'runs/get', { run_id })))
      await send(
        runs.map(([run_id, run], at) =>
          runChange(run_id, over({ ...run, completed_at: stored[at].completed_at, started_at: stored[at].started_at })),
        ),
      )
    },
  }
  return self
}
