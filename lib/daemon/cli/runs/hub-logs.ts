// What `logs RUN --hub` says at the end: whether the hub has all lines.

import { GetLogs } from '../../../wire/calls/runs.ts'
import { lackOf } from '../../../wire/records/log-lacks.ts'
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
