// kill -9 of the hub at random moments under load: every write that it acknowledged is there afterwards, the database is
// sound, and the hub is back within a second. CADRE_TEST_CYCLES sets how often (default 10, with CADRE_SLOW_TESTS 50).

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { openDatabase } from '../../db/open.ts'
import { folder } from '../support/folder.ts'
import { waited } from '../support/gap.ts'
import { environmentAt, HUB } from '../support/program.ts'
import { runChange } from '../support/sync.ts'

const CYCLES = Number(process.env.CADRE_TEST_CYCLES ?? (process.env.CADRE_SLOW_TESTS ? 50 : 10))
const WRITERS = 6
/** After its first write. */
const LONGEST_LIFE_MS = 150

interface Serving {
  child: Bun.Subprocess
  /** Without the time in which other processes had the cores. */
  startedIn: number
  call(path: string, body: object, token?: string): Promise<Record<string, never>>
}

async function serve(home: string): Promise<Serving> {
  const started = performance.now()
  const child = Bun.spawn([...HUB, 'serve', '--port', '0'], {
    env: { ...environmentAt(home), CADRE_HOME: home, CADRE_ADMIN_PASSWORD: 'known', CADRE_HUB_KEY: 'k' },
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const { value } = await child.stdout.getReader().read()
  const startedIn = performance.now() - started - waited(child.pid)
  const url = /http:\S+/.exec(new TextDecoder().decode(value))![0]
  return {
    child,
    startedIn,
    async call(path, body, token) {
      const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
      const reply = await fetch(`${url}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
      const { ok, data, error } = (await reply.json()) as { ok: boolean; data: Record<string, never>; error: object }
      if (!ok) throw new Error(`${path}: ${JSON.stringify(error)}`)
      return data
    },
  }
}

test(
  'kill -9 loses nothing that was acknowledged',
  async () => {
    const home = folder()
    let hub = await serve(home)
    const { startedIn: first } = hub
    const { token: session } = await hub.call('session/create', { username: 'admin', password: 'known' })
    const { realms } = (await hub.call('realms/list', {}, session)) as unknown as { realms: { id: string }[] }
    const realm_ids = [realms[0]!.id]
    const realm = await hub.call('auth/generate_token', { type: 'realm', name: 'd', realm_ids }, session)
    await hub.call('realms/add_team', { realm_id: realm_ids[0], team: '@admin/t' }, session)
    const { daemon_id } = await hub.call('daemons/register', { name: 'd' }, realm.token)

    const minted = new Set<number>()
    const orgs = new Set<string>()
    const outbox = new Outbox(daemon_id!)
    const starts: number[] = []
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      const { child, call } = hub
      const firstWrite = Promise.withResolvers<void>()
      const writers = Array.from({ length: WRITERS }, async (_, writer) => {
        for (let n = 0; !child.killed; n++) {
          if (writer === 0) await outbox.send(body => call('runs/sync', body, realm.token))
          else if (writer === 1) {
            const slug = `o${cycle}-${n}`
            await call('orgs/create', { slug, display_name: slug }, session)
            orgs.add(slug)
          } else minted.add((await call('auth/generate_token', { type: 'user', name: `${n}` }, session)).id!)
          firstWrite.resolve()
        }
      })
      const ended = Promise.allSettled(writers)
      await Promise.race([firstWrite.promise, ended])
      await Bun.sleep(Math.random() * LONGEST_LIFE_MS)
      child.kill('SIGKILL')
      await child.exited
      for (const end of await ended) {
        // Only the kill may have stopped a writer: a refusal is a fault.
        if (end.status === 'rejected') expect(String(end.reason)).not.toContain('"code"')
      }

      const db = openDatabase(join(home, 'hub.db'), { readonly: true })
      const column = (sql: string) => new Set(db.query(sql).values().flat())
      expect([...column('PRAGMA integrity_check')]).toEqual(['ok'])
      expect([...minted.difference(column('SELECT id FROM tokens'))]).toEqual([])
      expect([...orgs.difference(column('SELECT slug FROM orgs'))]).toEqual([])
      expect([...outbox.acknowledged.difference(column('SELECT run_id FROM runs'))]).toEqual([])
      const [[acked]] = db.query('SELECT acked_seq FROM daemons').values() as [[number]]
      expect(acked).toBeGreaterThanOrEqual(outbox.acked)
      // What was applied and what counts as applied are one: never a run more or less.
      expect(column('SELECT run_id FROM runs').size).toBe(acked)
      db.close()
      hub = await serve(home)
      starts.push(hub.startedIn)
    }
    hub.child.kill('SIGTERM')
    expect(await hub.child.exited).toBe(0)
    expect(minted.size).toBeGreaterThan(CYCLES)
    expect(outbox.acknowledged.size).toBeGreaterThan(0)
    // Where a start takes as long without a kill before it, the machine is busy.
    expect(starts.sort((a, b) => a - b)[CYCLES >> 1]).toBeLessThan(Math.max(1_000, 2 * first))
    console.log(
      `${CYCLES} kills; kept ${minted.size} tokens, ${orgs.size} orgs, ${outbox.acknowledged.size} synced runs; ` +
        `start ${Math.round(starts[CYCLES >> 1]!)} ms, slowest ${Math.round(starts.at(-1)!)} ms`,
    )
  },
  60_000 + 6_000 * CYCLES,
)

/** A daemon's outbox as the daemon keeps it: what is not acknowledged is sent again. */
class Outbox {
  readonly acknowledged = new Set<string>()
  readonly #daemonId: string
  readonly #epoch = crypto.randomUUID()
  #pending: { seq: number; run_id: string }[] = []
  acked = 0

  constructor(daemonId: string) {
    this.#daemonId = daemonId
  }

  #add(): void {
    this.#pending.push({ seq: this.acked + this.#pending.length + 1, ...runChange(Bun.randomUUIDv7()) })
  }

  async send(sync: (body: object) => Promise<Record<string, never>>): Promise<void> {
    while (this.#pending.length < 3) this.#add()
    const { acked_seq, rejected } = (await sync({
      daemon_id: this.#daemonId,
      epoch: this.#epoch,
      from_seq: this.#pending[0]!.seq,
      changes: this.#pending,
    })) as unknown as { acked_seq: number; rejected: unknown[] }
    expect(rejected).toEqual([])
    for (const { run_id } of this.#pending.splice(0, acked_seq - this.acked)) this.acknowledged.add(run_id)
    this.acked = acked_seq
  }
}
