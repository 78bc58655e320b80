// The answers about jobs on their way to the hub. One call is on its way at a time, and takes all answers that have
// waited for it, so that a hundred jobs cost as many calls as a few.

import type { Static } from 'typebox'
import { CadreError } from '../../error.ts'
import { type Ack, type Answer, MOST_OTHERS } from '../../wire/calls/daemon-link.ts'
import type { TakenJob } from './job-table.ts'

type Body = Static<typeof Ack.body>
export type Outcome = NonNullable<Body['others']>[number]
export type Reply = Static<typeof Ack.data>

/** The hub has given the job to another daemon, or knows it no longer. */
export const isOver = (error: unknown): error is CadreError =>
  error instanceof CadreError && (error.code === 'conflict' || error.code === 'not_found')

/** How much of an explanation the hub stores. */
const MOST_ERROR = 4_000

interface Waiting {
  outcome: Outcome
  resolve(): void
  reject(error: unknown): void
}

export class Answers {
  readonly #send: (first: Outcome, others: Outcome[]) => Promise<Reply>
  #waiting: Waiting[] = []
  #sending = false
  readonly #open = new Set<Promise<void>>()

  /** `send` calls the hub. Throws the hub's error about the first answer, or `unavailable`. */
  constructor(send: (first: Outcome, others: Outcome[]) => Promise<Reply>) {
    this.#send = send
  }

  /** Resolves when the hub has taken the answer. Throws the hub's error, or `unavailable`. */
  give({ id, lease_id }: Pick<TakenJob, 'id' | 'lease_id'>, status: Answer, error: string | null): Promise<void> {
    const why = error === null ? {} : { error: error.slice(0, MOST_ERROR) }
    const outcome: Outcome = { job_id: id, lease_id, status, ...why }
    const given = new Promise<void>((resolve, reject) => {
      this.#waiting.push({ outcome, resolve, reject })
      if (this.#sending) return
      this.#sending = true
      // What is given in this turn of the event loop comes into the first call.
      setImmediate(() => void this.#sendAll())
    })
    this.#open.add(given)
    const over = () => this.#open.delete(given)
    given.then(over, over)
    return given
  }

  /** Resolves when the answers that were given before have been taken or refused. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#open])
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) await this.#sendSome()
    this.#sending = false
  }

  async #sendSome(): Promise<void> {
    const some = this.#waiting.splice(0, MOST_OTHERS + 1)
    const [first, ...others] = some as [Waiting, ...Waiting[]]
    let reply: Reply
    try {
      reply = await this.#send(
        first.outcome,
        others.map(({ outcome }) => outcome),
      )
    } catch (error) {
      // Only these are about the first answer alone. The others are given again, and get the same reply as now.
      const refused = isOver(error)
      for (const each of refused ? [first] : some) each.reject(error)
      if (refused) this.#waiting.unshift(...others)
      return
    }
    first.resolve()
    if (others.length === 0) return
    // An older hub replies to the first answer only, and gets the others at the same time, each with a call of its own.
    if (!reply.others) await Promise.all(others.map(each => this.#sendAlone(each)))
    else {
      const replies = new Map(reply.others.map(each => [each.job_id, each]))
      this.#waiting.unshift(...others.filter(each => !settled(each, replies.get(each.outcome.job_id))))
    }
  }

  async #sendAlone({ outcome, resolve, reject }: Waiting): Promise<void> {
    await this.#send(outcome, []).then(resolve, reject)
  }
}

/** Whether the hub has replied to an answer. */
function settled({ resolve, reject }: Waiting, reply: NonNullable<Reply['others']>[number] | undefined): boolean {
  if (!reply) return false
  const { error } = reply
  if (error) reject(new CadreError(error.code, error.message))
  else resolve()
  return true
}
