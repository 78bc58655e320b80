// A crowd of daemons at one hub, which are only connections and rows: polls that wait, and heartbeats.

import { floorServer, ms, numbers, secondsSince, told, until } from './link-measure.ts'
import { addDaemons, inChunks, memory, percentile, processorTime, type World } from './link-world.ts'
import type { Server } from './server.ts'

/** Polls of `count` daemons wait, and one of them is woken by each dispatch. */
export async function polls(world: World, count: number): Promise<void> {
  const [bare, floor] = [await floorServer('hold'), [] as number[]]
  const empty = await memory(bare.pid, 'VmRSS')
  const bodies = numbers(count).map(() => ({ daemon_id: crypto.randomUUID(), slots: 1, wait_ms: 30_000 }))
  let answers = 0
  const held = await hold(bare.url, '/', world.token, bodies, () => answers++)
  await Bun.sleep(1_000)
  const floorMemory = (await memory(bare.pid, 'VmRSS')) - empty
  for (let n = 0; n < 20; n++) {
    const [started, before] = [performance.now(), answers]
    void fetch(`${bare.url}wake`, { method: 'POST' }).then(reply => reply.json())
    await until(() => answers > before)
    floor.push(performance.now() - started)
  }
  held.close()
  await bare.stop()

  const ids = await addDaemons(world, count)
  const before = await memory(world.hub.pid, 'VmRSS')
  const woken = new Map<number, number>()
  const started = performance.now()
  const waiting = await hold(
    world.hub.url,
    '/v1/daemons/poll',
    world.token,
    ids.map(daemon_id => ({ daemon_id, slots: 1, wait_ms: 30_000 })),
    // A poll that ended without a job was not woken.
    (at, reply) => void (reply.includes('job_id') && woken.set(at, performance.now())),
  )
  const arrived = secondsSince(started)
  await Bun.sleep(2_000)
  const busy = await processorTime(world.hub.pid)
  await Bun.sleep(5_000)
  const idle = ((await processorTime(world.hub.pid)) - busy) / 5
  const waits: number[] = []
  const wakes: number[] = []
  for (let n = 0; n < 15; n++) {
    const [asked, known] = [performance.now(), woken.size]
    await world.call('dispatch/run', { realm_id: world.realm, team: '@admin/noop' })
    await until(() => woken.size > known)
    waits.push([...woken.values()].at(-1)! - asked)
    await Bun.sleep(20)
    wakes.push(woken.size - known)
  }
  const used = (await memory(world.hub.pid, 'VmRSS')) - before
  waiting.close()
  told(
    `${count} polls wait`,
    `${(used / floorMemory).toFixed(1)} ×`,
    `${used} MiB; floor ${floorMemory} MiB; all there after ${arrived.toFixed(1)} s`,
  )
  told('  processor time while nothing happens', `${Math.round(idle * 100)} %`, 'of one core')
  const [took, least] = [percentile(waits, 0.5), percentile(floor, 0.5)]
  const about = `${ms(took)}, p99 ${ms(percentile(waits, 0.99))}; floor ${ms(least)}`
  const most = Math.max(...wakes)
  told('  from a dispatch to the answer of one poll', `${(took / least).toFixed(1)} ×`, about)
  told('  polls answered by one dispatch', String(most), '', { text: '1', met: most === 1 })
}

/** `count` daemons send a heartbeat every 15 s, for some seconds. */
export async function beats(world: World, count: number, seconds: number): Promise<void> {
  const ids = await addDaemons(world, count)
  const { teams_version } = await world.call('daemons/heartbeat', { daemon_id: ids[0]! }, world.token)
  const elysia = await floorServer('elysia')
  const beat = async (server: Server, path: string, token: string, body: (id: string) => object) => {
    const late: number[] = []
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
    const going = new Set<Promise<void>>()
    const busy = await processorTime(server.pid)
    const begun = performance.now()
    const total = Math.round((count / 15) * seconds)
    for (let n = 0; n < total; n++) {
      const due = begun + (n * 15_000) / count
      while (performance.now() < due) await Bun.sleep(1)
      const text = JSON.stringify(body(ids[n % count]!))
      const sent = fetch(server.url + path, { method: 'POST', headers, body: text }).then(async reply => {
        await reply.text()
        if (!reply.ok) throw new Error(`a heartbeat was answered ${reply.status}`)
        late.push(performance.now() - due)
      })
      going.add(sent)
      void sent.finally(() => going.delete(sent))
    }
    await Promise.all(going)
    const took = secondsSince(begun)
    return {
      load: ((await processorTime(server.pid)) - busy) / took,
      p99: percentile(late, 0.99),
      rate: total / took,
    }
  }
  const floor = await beat(elysia, '', 'token', daemon_id => ({ daemon_id }))
  const hub = await beat(world.hub, '/v1/daemons/heartbeat', world.token, daemon_id => ({
    daemon_id,
    teams_version,
    protocol: 1,
  }))
  await elysia.stop()
  const percent = (load: number) => `${Math.round(load * 100)} %`
  const about = `${percent(hub.load)} of one core at ${Math.round(hub.rate)}/s; floor ${percent(floor.load)}`
  told(`${count} daemons beat every 15 s`, `${(hub.load / floor.load).toFixed(1)} ×`, about)
  told('  p99 of a heartbeat', ms(hub.p99), `floor ${ms(floor.p99)}`)
}

/** Requests that wait at `url`, each on a connection of its own, as those of as many daemons do. */
async function hold(
  url: string,
  path: string,
  token: string,
  bodies: object[],
  answered: (at: number, reply: string) => void,
) {
  const { hostname, port } = new URL(url)
  const open: Bun.Socket[] = []
  await inChunks([...bodies.entries()], 200, async some => {
    const opened = some.map(([at, body]) => {
      const text = JSON.stringify(body)
      const head = `POST ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n`
      const socket = {
        open: (to: Bun.Socket) => void to.write(head + text),
        data: (_: Bun.Socket, reply: Buffer) => answered(at, reply.toString()),
      }
      return Bun.connect({ hostname, port: Number(port), socket })
    })
    open.push(...(await Promise.all(opened)))
  })
  const close = () => {
    for (const socket of open) socket.end()
  }
  return { close }
}
