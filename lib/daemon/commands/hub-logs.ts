// `logs RUN --hub`: the log of a run as the hub has it, and whether that is all of it.

import type { Static } from 'typebox'
import { CadreError } from '../../error.ts'
import { GetHubLogs, GetHubPhases, GetTree } from '../../wire/hub-calls.ts'
import type { LineRange } from '../../wire/hub-records.ts'
import { inline } from '../terminal/paint.ts'
import { hubOf } from './hub.ts'
import type { LogSource } from './log-source.ts'

/** Runs with incomplete logs that are named. */
const MOST_NAMED = 10

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** `hub` is its address, or true for the one where the home is enrolled or signed in. */
export async function atHub(home: string, hub: string | true): Promise<LogSource> {
  const client = await hubOf(home, hub === true ? {} : { hub })
  return {
    async tree(run_id) {
      if (UUID.test(run_id)) return (await client.call(GetTree, { run_id })).runs
      throw new CadreError('invalid_request', `${run_id}: the hub takes the whole id of a run`)
    },
    lines: query => client.call(GetHubLogs, query),
    async failedPhases(run_id) {
      const { phases } = await client.call(GetHubPhases, { run_id })
      return phases.flatMap(({ name, state }) => (state === 'failed' ? [name] : []))
    },
    async remarks(places) {
      const said: string[] = []
      for (const { entry, path } of places) {
        if (said.length === MOST_NAMED) return [...said, 'the logs of further runs were not looked at']
        const lacks = lackOf(await client.call(GetHubLogs, { run_id: entry.run_id, limit: 1 }))
        if (lacks) said.push(`${inline(path.join('/')) || 'the log'}: ${lacks}`)
      }
      return said.length > 0 ? said : ['the hub has the whole log']
    },
  }
}

/** What the hub does not have of a log, in words; null when it has all. */
function lackOf({ complete, missing, to_come, kept }: Static<typeof GetHubLogs.data>): string | null {
  if (complete) return null
  if (kept) return 'its daemon keeps the lines, because its setting `sync` is `status`'
  if (complete === null) return 'its daemon does not say whether these are all lines'
  const never = missing.length > 0 ? [`${missing.map(inWords).join(', ')} are missing for good`] : []
  const later = to_come && (to_come.to === null ? `lines from ${to_come.from} on` : inWords(to_come as LineRange))
  return [...never, ...(later ? [`${later} are still to come`] : [])].join('; ')
}

const inWords = ({ from, to }: LineRange): string => (from === to ? `line ${from}` : `lines ${from} to ${to}`)
