// The answers of a daemon about its jobs: many go with one call, and each settles for itself.

import { expect, test } from 'bun:test'
import { Answers, type Outcome, type Reply } from '../../lib/daemon/link/job-answers.ts'
import type { TakenJob } from '../../lib/daemon/link/job-table.ts'
import { CadreError } from '../../lib/error.ts'
import { MOST_OTHERS } from '../../lib/wire/calls/daemon-link.ts'

const job = (id: string): Pick<TakenJob, 'id' | 'lease_id'> => ({
  id,
  lease_id: `lease of ${id}`,
})
const taken = ({ job_id, status }: Outcome) => ({ job_id, status, error: null })
const replyTo = (first: Outcome, others: Outcome[]): Reply => ({
  ...{ id: first.job_id, job_id: first.job_id, status: first.status },
  ...(others.length > 0 && { others: others.map(taken) }),
})
const names = (count: number) => Array.from({ length: count }, (_, n) => `job ${n}`)

/** What became of each: `taken`, or the code of the error. */
const outcomes = (all: Promise<void>[]) =>
  Promise.all(all.map(each => each.then(() => 'taken').catch((error: CadreError) => error.code)))

test('what is given at the same time goes with one call, and what comes meanwhile with the next', async () => {
  const calls: number[] = []
  const arrived = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const answers = new Answers(async (first, others) => {
    calls.push(1 + others.length)
    arrived.resolve()
    await release.promise
    return replyTo(first, others)
  })
  const early = names(3).map(id => answers.give(job(id), 'accepted', null))
  await arrived.promise
  const late = names(MOST_OTHERS + 5).map(id => answers.give(job(`late ${id}`), 'done', null))
  release.resolve()
  expect(new Set(await outcomes([...early, ...late]))).toEqual(new Set(['taken']))
  expect(calls).toEqual([3, MOST_OTHERS + 1, 4])
})

test('an older hub, which replies to one answer at a time, gets all of them, and each reply is that of its answer', async () => {
  const got: string[] = []
  const answers = new Answers(async first => {
    got.push(first.job_id)
    if (first.job_id === 'job 3') throw new CadreError('conflict', 'the lease is over')
    return replyTo(first, [])
  })
  const all = names(5).map(id => answers.give(job(id), 'accepted', null))
  expect(await outcomes(all)).toEqual(['taken', 'taken', 'taken', 'conflict', 'taken'])
  expect(got).toEqual(names(5))
})

test('a refused answer is refused alone, wherever it stands', async () => {
  const over = new Set(['job 0', 'job 3'])
  const answers = new Answers(async (first, others) => {
    if (over.has(first.job_id)) throw new CadreError('conflict', 'the lease is over')
    const error = { code: 'conflict' as const, message: 'the lease is over' }
    const replies = others.map(each =>
      over.has(each.job_id) ? { job_id: each.job_id, status: null, error } : taken(each),
    )
    return { ...replyTo(first, []), others: replies }
  })
  const all = names(5).map(id => answers.give(job(id), 'accepted', null))
  expect(await outcomes(all)).toEqual(['conflict', 'taken', 'taken', 'conflict', 'taken'])
})

test('while the hub does not answer, every answer hears it, and a later one is sent again', async () => {
  let away = true
  const answers = new Answers(async (first, others) => {
    if (away) throw new CadreError('unavailable', 'the hub does not answer')
    return replyTo(first, others)
  })
  const all = names(3).map(id => answers.give(job(id), 'done', null))
  expect(await outcomes(all)).toEqual(Array(3).fill('unavailable'))
  away = false
  expect(await outcomes([answers.give(job('again'), 'failed', 'x'.repeat(9_000))])).toEqual(['taken'])
})
