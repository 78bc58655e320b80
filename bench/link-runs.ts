// The way of a dispatched run through hub and daemon: how soon it begins, how many pass in a second, and what a claim
// costs when many wait.

import { join } from 'node:path'
import { commits, floorServer, ms, newHome, numbers, secondsSince, told, until } from './link-measure.ts'
import {
  addJobs,
  addRealm,
  type BenchTeam,
  inChunks,
  percentile,
  post,
  startDaemon,
  teamText,
  type World,
} from './link-world.ts'

/** From a dispatch to the begin of its run. */
export async function begin(world: World): Promise<void> {
  const daemon = await startDaemon(newHome(), world)
  const body = { realm_id: world.realm, team: '@admin/noop' }
  const waits: number[] = []
  for (let n = 0; n < 220; n++) {
    const asked = Date.now()
    const { run_id } = await world.call('dispatch/run', body)
    let run: { started_at: number; completed_at: number | null } | null = null
    await until(async () => {
      run = await post(daemon.url, null, 'runs/get', { run_id }).catch(() => null)
      return run?.completed_at != null
    })
    // The first runs find nothing compiled.
    if (n >= 20) waits.push(run!.started_at - asked)
  }
  await daemon.stop()
  const [bare, floor] = [await floorServer('bare'), await commits(world)]
  const trips: number[] = []
  for (let n = 0; n < 220; n++) {
    const started = performance.now()
    // A call to dispatch, the answer to a poll, an `accepted`; and the commits: queued, leased, held, accepted, begun.
    for (let call = 0; call < 3; call++)
      await fetch(bare.url, { method: 'POST', body: '{}' }).then(reply => reply.json())
    for (let commit = 0; commit < 5; commit++) await floor.one()
    if (n >= 20) trips.push(performance.now() - started)
  }
  await bare.stop()
  await floor.close()
  for (const part of [0.5, 0.99]) {
    const [took, least] = [percentile(waits, part), percentile(trips, part)]
    const name = `from dispatch to begin, p${part * 100}`
    told(name, `${(took / least).toFixed(1)} ×`, `${ms(took)}; floor ${ms(least)} (3 calls, 5 commits)`)
  }
}

/** Claims a second while few and while many jobs wait: in two realms, in turn. */
export async function claims(world: World): Promise<void> {
  const queue = async (slug: string) => {
    const { realm, token } = await addRealm(world, slug)
    const { daemon_id } = await world.call('daemons/register', { name: slug }, token)
    const claim = async () => {
      await addJobs(world, 100, realm)
      const started = performance.now()
      for (let n = 0; n < 100; n++) {
        const { jobs } = await world.call('daemons/poll', { daemon_id, slots: 1, wait_ms: 0 }, token)
        if (jobs.length !== 1) throw new Error(`a poll claimed ${jobs.length} jobs`)
      }
      return secondsSince(started)
    }
    return { realm, claim }
  }
  const [short, long] = [await queue('short'), await queue('long')]
  await addJobs(world, 100_000, long.realm)
  let [few, many] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let round = 0; round < 8; round++) {
    few = Math.min(few, await short.claim())
    many = Math.min(many, await long.claim())
  }
  const floor = await commits(world)
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < 3; round++) {
    const started = performance.now()
    for (let n = 0; n < 100; n++) await floor.one()
    least = Math.min(least, secondsSince(started))
  }
  await floor.close()
  const rate = (seconds: number) => `${Math.round(100 / seconds)}/s`
  told('claims, 100 jobs waiting', `${(few / least).toFixed(1)} ×`, `${rate(few)}; floor ${rate(least)} (commits)`)
  const ratio = many / few
  told('claims, 100,000 jobs waiting, to 100', `${ratio.toFixed(2)} ×`, rate(many), {
    text: '≤ 1.3 ×',
    met: ratio <= 1.3,
  })
}

/**
 * Runs a second through hub and one daemon, and without the hub: of a phase that does nothing, where all that is done is
 * what hub and daemon do, and of three commands, as people run them.
 */
export async function runs(world: World): Promise<void> {
  await runsOf(world, '@admin/noop', 2_000)
  await runsOf(world, '@admin/commands', 300)
}

async function runsOf(world: World, name: BenchTeam, count: number): Promise<void> {
  const team = newHome()
  await Bun.write(join(team, 'team.yml'), teamText(name))
  const alone = await startDaemon(newHome(), null)
  const completed = async (list: (body: object) => Promise<{ total: number }>, before: number) =>
    until(async () => (await list({ state: 'completed', limit: 1 })).total >= before + count, 20)
  const measure = async (start: () => Promise<unknown>, list: (body: object) => Promise<{ total: number }>) => {
    let best = Number.POSITIVE_INFINITY
    for (let round = 0; round < 3; round++) {
      const { total } = await list({ state: 'completed', limit: 1 })
      const started = performance.now()
      await inChunks(numbers(count), 50, some => Promise.all(some.map(start)))
      await completed(list, total)
      best = Math.min(best, secondsSince(started))
    }
    return best
  }
  const floor = await measure(
    () => post(alone.url, null, 'runs/start', { path: team }),
    body => post(alone.url, null, 'runs/list', body),
  )
  await alone.stop()
  const daemon = await startDaemon(newHome(), world)
  const took = await measure(
    () => world.call('dispatch/run', { realm_id: world.realm, team: name }),
    body => world.call('runs/list', { realm_id: world.realm, ...body }),
  )
  await daemon.stop()
  const about = `${Math.round(count / took)}/s; without the hub ${Math.round(count / floor)}/s`
  told(`runs of ${name} through the hub, to without it`, `${(floor / took).toFixed(2)} ×`, about, {
    text: '≥ 0.5 ×',
    met: floor / took >= 0.5,
  })
}
