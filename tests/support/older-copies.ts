// Rounds of: dispatch, copy, execute on one to four daemons, put the copy in place of the database. Afterwards each run
// that waited in the copy was executed by exactly one daemon, every run that a daemon executed is shown as ended, and the
// hub trusts its database again without a person.

import { until } from './bounded.ts'
import { CopiedHub, type Place, postgresPlace, sqlitePlace } from './older-copy.ts'
import { type Random, randomFrom } from './random.ts'
import { StandbyPair } from './standby.ts'

export const WAYS = [
  'restore',
  'copied file',
  'written over',
  'renamed file',
  'pg_restore',
  'pg_restore --clean',
  'standby loss',
  'standby loss killed',
  'standby whole',
] as const
export type Way = (typeof WAYS)[number]

export interface Toll {
  rounds: Partial<Record<Way, number>>
  runs: number
  /** Runs that were dispatched after the copy and that no daemon had: they are lost. */
  lost: number
  /** Runs that a daemon continued after its stop, whose command so ran again there. */
  continued: number
  /** From the start of the hub on the copy until it trusted it again. */
  longest_ms: number
}

interface Options {
  rounds: number
  seed: number
  ways: readonly Way[]
  server: string
  say(line: string): void
}

const CALM_MS = 90_000

export async function olderCopies({ rounds, seed, ways, server, say }: Options): Promise<Toll> {
  const random = randomFrom(seed)
  const toll: Toll = { rounds: {}, runs: 0, lost: 0, continued: 0, longest_ms: 0 }
  for (let at = 0; at < rounds; at++) {
    const way = ways[at % ways.length]!
    const started = Date.now()
    try {
      await round(way, server, random, toll)
    } catch (error) {
      say(`round ${at} (${way}) of seed ${seed} failed`)
      throw error
    }
    toll.rounds[way] = (toll.rounds[way] ?? 0) + 1
    say(`round ${at + 1} (${way}): ${Date.now() - started} ms, ${toll.runs} runs so far`)
  }
  return toll
}

async function round(way: Way, server: string, random: Random, toll: Toll): Promise<void> {
  if (way.startsWith('pg_restore')) {
    await using place = await postgresPlace(server, { inPlace: way.endsWith('--clean') })
    await copyRound(place, random, toll)
  } else if (way.startsWith('standby')) {
    await using pair = await StandbyPair.start()
    await failoverRound(pair, way, random, toll)
  } else await copyRound(sqlitePlace(way as Parameters<typeof sqlitePlace>[0]), random, toll)
}

const pick = (random: Random, least: number, most: number) => least + Math.floor(random() * (most - least + 1))

interface Dispatched {
  text: string
  run: string
  /** Whether it was dispatched before the copy was begun. */
  isBefore: boolean
}

async function world(hub: CopiedHub, random: Random) {
  const names = ['ada', 'bob', 'cora', 'dan'].slice(0, pick(random, 1, 4))
  for (const name of names) await hub.daemon(name)
  const all: Dispatched[] = []
  const dispatch = async (count: number, isBefore: boolean) => {
    for (let at = 0; at < count; at++) {
      const text = `run-${all.length}`
      all.push({ text, run: await hub.dispatch(text), isBefore })
    }
  }
  /** Daemons that are away while the copy is made, or put in place. */
  const some = () => names.filter(() => random() < 0.5)
  return { names, all, dispatch, some }
}

async function copyRound(place: Place, random: Random, toll: Toll): Promise<void> {
  await using hub = await CopiedHub.start(place.database)
  const { names, all, dispatch, some } = await world(hub, random)
  const away = new Set(random() < 0.5 ? names : some())
  for (const name of away) await hub.leave(name)
  await dispatch(pick(random, 2, 8), true)
  await Bun.sleep(pick(random, 0, 400))
  await place.copy()
  for (const name of away) await hub.daemon(name)
  await dispatch(pick(random, 0, 4), false)
  await Bun.sleep(pick(random, 0, 1_500))
  const later = new Set(some())
  for (const name of later) await hub.leave(name)
  await hub.restore(place, random() < 0.5 ? 'SIGKILL' : 'SIGTERM')
  await finish(hub, all, later, dispatch, random, toll)
}

async function failoverRound(pair: StandbyPair, way: Way, random: Random, toll: Toll): Promise<void> {
  await using hub = await CopiedHub.start(pair.location)
  const { names, all, dispatch, some } = await world(hub, random)
  const away = new Set(random() < 0.5 ? names : some())
  for (const name of away) await hub.leave(name)
  await dispatch(pick(random, 2, 8), true)
  await pair.catchUp()
  const isWhole = way === 'standby whole'
  if (!isWhole) await pair.cut()
  for (const name of away) await hub.daemon(name)
  await dispatch(pick(random, 0, 4), isWhole)
  await Bun.sleep(pick(random, 0, 1_500))
  const later = new Set(some())
  for (const name of later) await hub.leave(name)
  const isKilled = way === 'standby loss killed'
  if (isKilled) await hub.stop('SIGKILL')
  if (isWhole) await pair.catchUp()
  await pair.promote()
  if (isKilled) await hub.serve()
  await until(async () => (await hub.call('realms/list').catch(() => null))?.status === 200, 'the hub answers')
  await finish(hub, all, later, dispatch, random, toll)
}

async function finish(
  hub: CopiedHub,
  all: Dispatched[],
  away: ReadonlySet<string>,
  dispatch: (count: number, isBefore: boolean) => Promise<void>,
  random: Random,
  toll: Toll,
): Promise<void> {
  const started = Date.now()
  const copied = all.length
  await dispatch(pick(random, 0, 3), true)
  await Bun.sleep(pick(random, 0, 2_000))
  for (const name of away) await hub.daemon(name)
  const isTrusted = async () => (await (await fetch(`${hub.url}/ready`)).text()).includes('"older_copy"') === false
  await until(isTrusted, 'the hub trusts its database again', CALM_MS)
  toll.longest_ms = Math.max(toll.longest_ms, Date.now() - started)
  for (const { run, text, isBefore } of all) {
    const isOver = async () => {
      const state = await hub.stateOf(run)
      const executed = hub.executed.some(each => each.text === text)
      return state === 'completed' || (state === null && !executed && !isBefore)
    }
    await until(isOver, `the end of ${text}, run ${run}`, CALM_MS)
  }
  for (const { run, text, isBefore } of all) {
    const homes = new Set(hub.executed.filter(each => each.text === text).map(({ daemon }) => daemon))
    const times = hub.executed.filter(each => each.text === text).length
    if (homes.size > 1) throw new Error(`${text}, run ${run}, was executed by ${[...homes].join(' and ')}`)
    if (homes.size === 0 && isBefore) throw new Error(`${text}, run ${run}, is completed and was not executed`)
    if (homes.size === 0) toll.lost++
    if (times > 1) toll.continued++
  }
  toll.runs += Math.max(copied, all.length)
}
