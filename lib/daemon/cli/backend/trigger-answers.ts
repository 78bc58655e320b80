// What commands ask about triggers: of the process that holds the home, or of its database when no process does. Changes
// go through that process too; without one, this process holds the home meanwhile.

import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { CadreError } from '../../../error.ts'
import { named } from '../../../firing/shown.ts'
import { createLog } from '../../../log/log.ts'
import { GetTrigger, ListFirings, ListTriggers, PreviewTrigger } from '../../../wire/calls/triggers.ts'
import { page } from '../../../wire/page.ts'
import { databaseFile } from '../../home/home.ts'
import { holderOf } from '../../home/lock.ts'
import { type Older, readRunDatabase } from '../../home/run-database.ts'
import { TriggerView } from '../../triggers/trigger-view.ts'
import { type Callee, withHome } from './home-client.ts'
import { openRunner } from './home-runner.ts'
import { answer, answering } from './local-answers.ts'

/** Reads with `work`, which may be called more than once. */
export function askAboutTriggers<T>(home: string, work: (callee: Callee) => Promise<T>, older?: Older): Promise<T> {
  return withHome(home, work, async () => {
    const db = await openTriggers(home, older)
    try {
      return await work(db ? fromDatabase(new TriggerView(db)) : none)
    } finally {
      db?.close()
    }
  })
}

/** Changes with `work`, which may be called more than once. */
export async function changeTriggers<T>(home: string, work: (callee: Callee) => Promise<T>): Promise<T> {
  const log = createLog({ level: 'warn' })
  const { runner, result } = await openRunner(home, 'triggers', log, ({ callee }) => work(callee))
  await runner.host?.close()
  return result
}

/** Only `serve` looks at triggers, so a process of `run` that holds the home does not count. */
export const isServed = (home: string): boolean => holderOf(home)?.command === 'serve'

/** Null for a home in which nothing has run. */
async function openTriggers(home: string, older?: Older): Promise<Database | null> {
  return existsSync(databaseFile(home)) ? readRunDatabase(home, older) : null
}

function fromDatabase(view: TriggerView): Callee {
  return answering(
    answer(ListTriggers, async body => view.list({ ...body, ...page(body) })),
    answer(GetTrigger, async body => view.get(named(body))),
    answer(PreviewTrigger, async body => view.previewFor(body)),
    answer(ListFirings, async body => view.firingsFor(body)),
  )
}

const nothing = async (): Promise<never> => {
  throw new CadreError('not_found', 'this home has no triggers; `cadre schedules add` makes one')
}
const none: Callee = answering(
  answer(ListTriggers, async () => ({ triggers: [], total: 0 })),
  answer(GetTrigger, nothing),
  answer(PreviewTrigger, nothing),
  answer(ListFirings, nothing),
)
