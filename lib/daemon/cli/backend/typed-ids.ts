// Ids as people type them: a whole id, a beginning of at least six characters that only one has, `last`, or of runs
// `last-failed`. Ids begin with the time, so new runs begin alike, and their ends tell them apart.

import { CadreError } from '../../../error.ts'
import { ListReviews } from '../../../wire/calls/reviews.ts'
import { ListRuns } from '../../../wire/calls/runs.ts'
import type { Callee } from './home-client.ts'
import { askAboutRuns } from './run-answers.ts'

const WHOLE = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const BEGINNING = /^[0-9a-f]{6}[0-9a-f-]*$/
const MOST = 100
const NAMED = 5

/** Calls `work` with whoever knows the runs: the process that holds a home, its database, or a hub. */
export type Ask = <T>(work: (callee: Callee) => Promise<T>) => Promise<T>

const inHome =
  (home: string): Ask =>
  work =>
    askAboutRuns(home, work)

/**
 * The id of a run; `last` is the newest top run, and `last-failed` the newest that has failed. When a top run and runs below it begin alike, the top run is meant.
 * Throws `not_found`, and `invalid_request` for a beginning that several have or that is too short. Other text is returned as it is.
 */
export function runIdOf(home: string, typed: string): Promise<string> {
  return runIdAt(inHome(home), `in ${home}`, typed)
}

/** `where` completes the sentence that nothing has run there. */
export async function runIdAt(ask: Ask, where: string, typed: string): Promise<string> {
  const asked = typed.toLowerCase()
  if (typed === 'last') {
    const { runs } = await ask(all => all.call(ListRuns, { root_only: true, limit: 1 }))
    if (runs[0]) return runs[0].run_id
    throw new CadreError('not_found', `nothing has run ${where} yet`)
  }
  if (typed === 'last-failed') {
    const { runs } = await ask(all => all.call(ListRuns, { root_only: true, state: 'failed', limit: 1 }))
    if (runs[0]) return runs[0].run_id
    throw new CadreError('not_found', `no run has failed ${where}`)
  }
  if (WHOLE.test(asked)) return asked
  refuseShort(asked)
  if (!BEGINNING.test(asked)) return typed
  return ask(callee => runBeginning(callee, asked))
}

async function runBeginning(callee: Callee, begins: string): Promise<string> {
  const { runs, total } = await callee.call(ListRuns, { begins, limit: MOST })
  const [found] = runs
  if (!found) return runEnding(callee, begins)
  if (total === 1) return found.run_id
  const tops = await callee.call(ListRuns, { begins, root_only: true, limit: NAMED })
  const [top] = tops.runs
  const oneTree = total <= MOST && runs.every(({ root_run_id }) => root_run_id === top?.run_id)
  if (top && oneTree) return top.run_id
  const named = tops.total > 0 ? tops : { runs: runs.slice(0, NAMED), total }
  const ids = named.runs.map(({ run_id, team }) => `${run_id} (${team})`)
  throw several('runs begin', begins, ids, named.total)
}

/** Looks at the newest top runs only, because an end is in no index. */
async function runEnding(callee: Callee, ends: string): Promise<string> {
  const { runs } = await callee.call(ListRuns, { root_only: true, limit: MOST })
  const [found, ...more] = runs.filter(({ run_id }) => run_id.endsWith(ends))
  if (found && more.length === 0) return found.run_id
  if (!found) throw new CadreError('not_found', `no run begins with ${ends}, and no new one ends with it`)
  const ids = [found, ...more].slice(0, NAMED).map(({ run_id, team }) => `${run_id} (${team})`)
  throw several('runs end', ends, ids, 1 + more.length)
}

/** The id of a review; `last` is the newest that nobody has answered. Throws like `runIdAt`. */
export async function reviewIdAt(ask: Ask, typed: string): Promise<string> {
  const begins = typed.toLowerCase()
  refuseShort(begins)
  if (typed !== 'last' && (WHOLE.test(begins) || !BEGINNING.test(begins))) return typed
  const filter = typed === 'last' ? { state: 'pending' } : { begins }
  const { reviews, total } = await ask(all => all.call(ListReviews, { ...filter, limit: NAMED }))
  const [found] = reviews
  if (!found && typed === 'last') throw new CadreError('not_found', 'no review waits for an answer')
  if (!found) throw new CadreError('not_found', `no review begins with ${begins}`)
  if (typed === 'last' || total === 1) return found.id
  const ids = reviews.map(({ id, phase }) => `${id} (${phase ?? 'the run'})`)
  throw several('reviews begin', begins, ids, total)
}

function refuseShort(begins: string): void {
  if (!/^[0-9a-f]{1,5}$/.test(begins)) return
  throw new CadreError('invalid_request', `${begins} is too short: give at least six characters of the id`)
}

/** `what` is what they do, such as `runs begin`; `typed` is with what. */
function several(what: string, typed: string, ids: readonly string[], total: number): CadreError {
  const more = total > ids.length ? `, and ${total - ids.length} more` : ''
  return new CadreError('invalid_request', `several ${what} with ${typed}: ${ids.join(', ')}${more}`)
}
