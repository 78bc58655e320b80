// A notice above the runs about the link to the hub: what waits to be sent for long, and what keeps it from being sent.

import { sizeText } from '../../size.ts'
import { GetHubLink, type HubLink } from '../../wire/calls/process.ts'
import { call, command } from '../kit/api.ts'
import { serverNow } from '../kit/clock.ts'
import { useLoaded } from '../kit/parts.tsx'
import { When } from '../kit/time.tsx'

const REFRESH_MS = 10_000
/** What has waited for less is on its way. */
const LONG_MS = 60_000

export function HubLinkNotice() {
  const link = useLoaded('hub link', () => call(GetHubLink, {}), REFRESH_MS).data
  if (!link || link.url === null || !needsNotice(link)) return null
  const { url, paused, troubles, waiting } = link
  const { changes, lines, files } = waiting
  return (
    <section class="notice awaiting_input" aria-label="Link to the hub">
      {paused && (
        <p>
          An operator has paused this daemon: it finishes what it has and takes no more runs.{' '}
          <code>{command} daemons unpause</code> ends the pause.
        </p>
      )}
      {troubles.length > 0 && (
        <>
          <p>The daemon cannot do its work with the hub at {url}:</p>
          <ul>
            {troubles.filter(isFirst).map(({ error, since }) => (
              <li key={error}>
                {error} (<When at={since} />)
              </li>
            ))}
          </ul>
        </>
      )}
      {changes.count + lines > 0 && (
        <p>
          {countOf(changes.count, 'change')} ({sizeText(changes.bytes)}) and {countOf(lines, 'log line')} wait to be
          sent to it
          {changes.oldest_at !== null && (
            <>
              ; the oldest was queued <When at={changes.oldest_at} />
            </>
          )}
          .
        </p>
      )}
      {files.count > 0 && (
        <p>
          {files.count === 1 ? 'One file of a run waits' : `${files.count} files of runs wait`} ({sizeText(files.bytes)}
          ) to be sent to its store
          {files.oldest_at !== null && (
            <>
              ; the oldest was queued <When at={files.oldest_at} />
            </>
          )}
          .{files.error !== null && ` The last try failed: ${files.error}`}
        </p>
      )}
    </section>
  )
}

function needsNotice({ paused, troubles, waiting: { changes, files } }: HubLink): boolean {
  const isLong = (at: number | null) => at !== null && at < serverNow() - LONG_MS
  return paused || troubles.length > 0 || files.error !== null || isLong(changes.oldest_at) || isLong(files.oldest_at)
}

/** Several steps may fail with the same error. */
const isFirst = ({ error }: HubLink['troubles'][number], at: number, all: HubLink['troubles']): boolean =>
  all.findIndex(other => other.error === error) === at

const countOf = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`
