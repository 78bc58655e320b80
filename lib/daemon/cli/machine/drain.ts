// `drain`: lets the daemon of the home end once what it executes has ended, and waits for that.

import { A_DURATION, formatDuration, parseDuration } from '../../../duration.ts'
import { CadreError } from '../../../error.ts'
import { isAlive } from '../../../program/process.ts'
import { line } from '../../../text/printable.ts'
import { printMessage } from '../../../text/terminal.ts'
import { DrainDaemon, LONGEST_DRAIN_MS, type UnderWay } from '../../../wire/calls/process.ts'
import { ListRuns } from '../../../wire/calls/runs.ts'
import { homeFolder } from '../../home/home.ts'
import { holderOf, isLeft } from '../../home/lock.ts'
import { createClient } from '../backend/home-client.ts'
import { askAboutRuns } from '../backend/run-answers.ts'

const LOOK_MS = 250
/** How much longer than it needs at most this waits for the daemon. */
const PATIENCE_MS = 30_000
const MOST_NAMED = 10

/** Resolves when the daemon has ended by itself. Throws `unavailable` when there is none, or it ended in another way. */
export async function drain({ home: given, most }: { home?: string; most?: string }): Promise<void> {
  const mostMs = most === undefined ? undefined : durationIn(most)
  const home = homeFolder(given)
  const holder = holderOf(home)
  if (holder === null) throw new CadreError('unavailable', `no daemon serves ${home}: there is nothing to drain`)
  if (holder.address === null) {
    throw new CadreError('unavailable', `process ${holder.pid} holds ${home} and does not serve it: try again later`)
  }
  const { pid, address } = holder
  const client = createClient(home, address)
  let answer = await client.call(DrainDaemon, mostMs === undefined ? {} : { most_ms: mostMs })
  let asked = performance.now()
  const what = `process ${pid} at ${address}`
  printMessage(
    line`${what} drains: nothing new begins, and what is executed has ${formatDuration(answer.left_ms)} to end`,
  )
  let said = ''
  const show = (underWay: UnderWay) => {
    const text = underWayText(underWay)
    if (text !== said && text !== '') printMessage(line`waiting for ${text}`)
    said = text
  }
  show(answer.under_way)
  while (isAlive(holder)) {
    const overdue = performance.now() - asked - answer.left_ms
    if (overdue > PATIENCE_MS) {
      throw new CadreError(
        'unavailable',
        `process ${pid} has not ended, and does not answer: see its log; \`kill -9 ${pid}\` ends it`,
      )
    }
    await Bun.sleep(LOOK_MS)
    const next = await client.call(DrainDaemon, {}).catch(error => {
      // It answers nothing more once it closes.
      if (error instanceof CadreError && error.code === 'unavailable') return null
      throw error
    })
    if (!next) continue
    answer = next
    asked = performance.now()
    show(answer.under_way)
  }
  if (isLeft(home, holder)) {
    throw new CadreError('unavailable', `process ${pid} has ended, but not by itself: see its log`)
  }
  const left = await askAboutRuns(home, all => all.call(ListRuns, { state: 'interrupted', root_only: true, limit: 1 }))
  const goesOn = left.total === 1 ? '1 run goes on' : `${left.total} runs go on`
  printMessage(line`process ${pid} has ended${left.total === 0 ? '' : `; ${goesOn} at the next start`}`)
}

function underWayText(underWay: UnderWay): string {
  const named = underWay
    .slice(0, MOST_NAMED)
    .map(
      ({ run_id, team, phase }) => `${phase === null ? 'files and messages' : `phase ${phase}`} of ${team} (${run_id})`,
    )
  const more = underWay.length - named.length
  return [...named, ...(more > 0 ? [`${more} more`] : [])].join(', ')
}

function durationIn(text: string): number {
  const ms = parseDuration(text)
  if (ms === null) throw new CadreError('invalid_request', `--most: expected ${A_DURATION}, got ${text}`)
  if (ms <= LONGEST_DRAIN_MS) return ms
  throw new CadreError('invalid_request', `--most: at most ${formatDuration(LONGEST_DRAIN_MS)}, got ${text}`)
}
