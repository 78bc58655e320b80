// What `logs RUN --hub` says at the end: whether the hub has all lines.

import type { Static } from 'typebox'
import { GetLogs } from '../../../wire/calls/runs.ts'
import type { LineRange } from '../../../wire/records/run-records.ts'
import type { HubClient } from '../../link/hub-client.ts'

/** Runs with incomplete logs that are named. */
const MOST_NAMED = 10

/** One line for each of these runs of whose log the hub lacks something. The run that was asked for has no name. */
export async function lacksOfLogs(
  client: HubClient,
  logs: readonly { run_id: string; name: string }[],
): Promise<string[]> {
  const remarks: string[] = []
  for (const { run_id, name } of logs) {
    if (remarks.length === MOST_NAMED) return [...remarks, 'the logs of further runs were not looked at']
    const lacks = lackOf(await client.call(GetLogs, { run_id, limit: 1 }))
    if (lacks) remarks.push(`${name || 'the log'}: ${lacks}`)
  }
  return remarks.length > 0 ? remarks : ['the hub has the whole log']
}

/** What the hub does not have of a log, in words; null when it has all. */
function lackOf({
  complete = null,
  missing = [],
  to_come = null,
  kept,
  cut,
}: Static<typeof GetLogs.data>): string | null {
  if (complete) return null
  if (kept) return 'its daemon keeps the lines, because its setting `sync` is `status`'
  if (complete === null) return 'its daemon does not say whether these are all lines'
  const never =
    missing.length > 0
      ? [
          `${missing.map(inWords).join(', ')} are missing for good${cut ? ', because the realm has used up its quota of log bytes' : ''}`,
        ]
      : []
  const later = to_come && (to_come.to === null ? `lines from ${to_come.from} on` : inWords(to_come as LineRange))
  return [...never, ...(later ? [`${later} are still to come`] : [])].join('; ')
}

const inWords = ({ from, to }: LineRange): string => (from === to ? `line ${from}` : `lines ${from} to ${to}`)
