// Real daemons with many schedules of each minute that are killed again and again: at random moments, and at places
// where something is being written. Afterwards every rule of firings is checked.

import { until } from './bounded.ts'
import { files, type RunningDaemon, spawnDaemon } from './daemon.ts'
import type { FakeClock } from './fake-clock.ts'
import { checkFirings } from './firing-rules.ts'
import { folder } from './folder.ts'
import { rowsOf } from './home.ts'
import { randomFrom } from './random.ts'

const MINUTE = 60_000
/** A place of the first so many at which a daemon dies. */
const PLACES = 120
/** How long a daemon lives that dies at a moment. */
const LIFE_MS = 1_000

/** Teams that end at once, and that take a moment, so that runs of a schedule meet. */
const team = (name: string, phase: string) => `name: "@local/${name}"\nversion: 1.0.0\nphases:\n  - ${phase}\n`
const teams = (seconds: number) => ({
  'brief/team.yml': team('brief', '{ name: ask, type: gate, when: "false", review: { prompt: "Go on?" } }'),
  'long/team.yml': team('long', `{ name: nap, agent: exec, commands: [{ name: c, run: sleep ${seconds} }] }`),
})
/** With the clock of the machine a long run is one that daemons that die never end. */
const [SHORT_S, LONG_S] = [0.3, 20]
/** One schedule of so many has long runs; all ways have some. */
const LONG_EACH = 5
export const WAYS = [
  { overlap: 'skip' },
  { overlap: 'queue', queue_max: 2 },
  { overlap: 'cancel_running' },
  { overlap: 'allow', catch_up: 'all' },
  { overlap: 'skip', catch_up: 'last', jitter: '20s' },
  { overlap: 'allow', at_most: { count: 3, per: '2m' } },
]

export interface StormOptions {
  seed: number
  schedules: number
  /** How many daemons die, with a clock that the test moves. */
  kills?: number
  /** Without it the daemons have the clock of the machine, for so many minutes. */
  clock?: FakeClock
  minutes?: number
  say?(text: string): void
}

export async function triggerStorm({ seed, schedules, kills = Infinity, clock, minutes = 0, say }: StormOptions) {
  const random = randomFrom(seed)
  const home = folder()
  const root = files(teams(clock ? SHORT_S : LONG_S))
  const env = { CADRE_LOG_LEVEL: 'error', ...clock?.env }
  let ahead = 0
  const begun = performance.now()
  const isOver = () => died >= kills || (minutes > 0 && performance.now() - begun > minutes * MINUTE)
  let died = 0

  const first = await spawnDaemon({ home, env })
  for (let n = 0; n < schedules; n++) {
    const way = WAYS[n % WAYS.length]!
    const team = `${root}/${n % LONG_EACH === 0 ? 'long' : 'brief'}`
    const body = {
      name: `s-${n}`,
      kind: 'schedule',
      team,
      cron: '* * * * *',
      tz: 'UTC',
      ...way,
    }
    await first.call('/v1/triggers/add', body, { authorization: `Bearer ${first.token}` })
  }
  await first.kill('SIGKILL')

  while (!isOver()) {
    const place = random.once(2) ? 1 + random.below(PLACES) : null
    const lives = Bun.sleep(LIFE_MS * (0.2 + random()) * (clock ? 1 : 4))
    let daemon: RunningDaemon
    try {
      daemon = await spawnDaemon({ home, env: { ...env, ...(place !== null && { CADRE_FAILPOINT: String(place) }) } })
    } catch (error) {
      // It died before it listened.
      if (place === null) throw error
      died++
      continue
    }
    if (clock) {
      for (let minute = 0; minute < 2; minute++) {
        ahead += MINUTE
        clock.set(ahead)
        await Bun.sleep(200 + random.below(500))
      }
    }
    await lives
    await daemon.kill('SIGKILL')
    died++
    say?.(`${((performance.now() - begun) / 1_000).toFixed(0)} s: ${died} killed`)
  }

  const last = await spawnDaemon({ home, env })
  if (clock) ahead += MINUTE
  clock?.set(ahead)
  const now = () => Date.now() + ahead
  const isDone = () => {
    const [open] = rowsOf<{ n: number }>(
      home,
      `SELECT (SELECT count(*) FROM triggers WHERE next_at <= ?) + (SELECT count(*) FROM runs WHERE completed_at IS NULL)
        + (SELECT count(*) FROM firings WHERE state = 'waiting' AND reason <> 'limit') AS n`,
      now() - 2_000,
    )
    return open!.n === 0
  }
  await until(isDone, 'everything that was due has started', 120_000)
  const { code } = await last.stop()
  if (code !== 0) throw new Error(`the last daemon ended with ${code}: ${last.output.stderr}`)
  return { kills: died, states: checkFirings(home) }
}
