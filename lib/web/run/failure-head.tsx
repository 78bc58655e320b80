// What went wrong, at the top of the page of a run: the error, where it began, the last lines of the log there, and which items
// of maps failed.

import { GetLogs, GetWhy } from '../../wire/calls/runs.ts'
import type { Cause, FailedItems } from '../../wire/records/run-records.ts'
import { PASSED_OVER } from '../../wire/records/words.ts'
import { call } from '../kit/api.ts'
import { Coloured, useLoaded } from '../kit/parts.tsx'
import { to, withQuery } from '../kit/route.ts'
import type { Detail, Live } from './live.ts'

/** How many lines of the log are shown. */
const LINES = 10
/** Errors of items of one map. The page `Why` has all. */
const MOST_CAUSES = 5

/** Whether the line of an explanation names phases whose failure was tolerated. */
const isPassedOver = (line: string): boolean => line.startsWith(PASSED_OVER)

/** `brief`: only what went wrong. `next` goes to the next failure of the tree. */
export function FailureHead({ live, run, brief, next }: { live: Live; run: Detail; brief: boolean; next(): void }) {
  const isFailed = run.state === 'failed' || run.state === 'crashed'
  if (run.error === null && !isFailed && !run.tolerated && !tellsFailures(live)) return null
  const inAll = live.rankedWhole.value.filter(({ cause }) => cause)
  const at = inAll.findIndex(each => each.run.run_id === run.run_id)
  const isNext = inAll.length > 1 || (inAll.length === 1 && at < 0)
  if (brief && run.error === null && !isNext) return null
  return (
    <section class={`notice ${isFailed ? 'failed' : 'awaiting_input'}`} aria-label="What went wrong">
      {run.error && <p class="wrap">{run.error.message}</p>}
      {run.error?.hint && <p class="quiet wrap">{run.error.hint}</p>}
      {!brief && (
        <Reasons
          live={live}
          run={run}
          from={isFailed ? run.run_id : live.ranked.value.find(({ cause }) => cause)?.run.run_id}
        />
      )}
      {isNext && (
        <p class="row">
          <button type="button" class="plain small" onClick={next} aria-keyshortcuts="f">
            Next failure <kbd>f</kbd>
          </button>
          <span class="quiet small number">
            {at < 0 ? inAll.length.toLocaleString('en') : `${at + 1} of ${inAll.length.toLocaleString('en')}`} in this
            tree
          </span>
        </p>
      )}
    </section>
  )
}

/** Older daemons do not count what was tolerated, and explain it all the same. */
const tellsFailures = ({ why: { value: why } }: Live): boolean =>
  why !== null && ((why.items ?? []).length > 0 || why.lines.some(isPassedOver))

/** `from`: the run whose failure is explained. In a run that completed it is the first that was tolerated. */
function Reasons({ live, run: { run_id, attempt }, from }: { live: Live; run: Detail; from: string | undefined }) {
  const why = live.why.value
  const below = useLoaded(`${from} ${attempt}`, async () =>
    from === undefined || from === run_id ? null : call(GetWhy, { run_id: from }),
  ).data
  if (!why) return null
  const { items = [], lines } = why
  const { chain } = from === run_id ? why : (below ?? { chain: [] })
  const leaf = chain.findLast(each => each.error !== null && each.phase !== null)
  return (
    <>
      {items.map(each => (
        <Items key={`${each.run_id} ${each.phase} ${each.passed_over}`} of={each} />
      ))}
      {lines.filter(isPassedOver).map(line => (
        <p key={line} class="wrap">
          {line}
        </p>
      ))}
      {leaf && <Leaf of={leaf} top={run_id} />}
    </>
  )
}

function Items({ of: { phase, passed_over, total, failed, causes } }: { of: FailedItems }) {
  const rest = causes.length - MOST_CAUSES
  return (
    <>
      <p>
        {failed.toLocaleString('en')} of {total.toLocaleString('en')} items of {phase} failed
        {passed_over !== undefined && ` in ${passed_over}, which was passed over`}:
      </p>
      <ul>
        {causes.slice(0, MOST_CAUSES).map(({ message, count, keys }) => (
          <li key={message} class="wrap">
            {keys.join(', ')}
            {count > keys.length && ` and ${(count - keys.length).toLocaleString('en')} more`}:{' '}
            <span class="quiet">{message}</span>
          </li>
        ))}
        {rest > 0 && <li>{rest} more errors</li>}
      </ul>
    </>
  )
}

/** Where the failure began, with the last lines of the log there. */
function Leaf({ of: { run_id, run_name, team, phase, error }, top }: { of: Cause; top: string }) {
  const { data } = useLoaded(`last ${run_id} ${phase}`, () =>
    call(GetLogs, { run_id, phase: phase!, limit: LINES, last: true }),
  )
  const lines = data?.lines ?? []
  return (
    <>
      <p>
        {'It began in '}
        <a href={withQuery(to('runs', run_id), { phase: phase! })}>
          {run_id === top ? phase : `${run_name ?? team} › ${phase}`}
        </a>
        {run_id !== top && <span class="quiet wrap"> {error!.message}</span>}
      </p>
      {lines.length > 0 && (
        <section class="printed wrap" aria-label={`Last lines of ${phase}`}>
          {lines.map(({ seq, text }) => (
            <div key={seq}>
              <Coloured text={text} />
            </div>
          ))}
        </section>
      )}
      {lines.length > 0 && (
        <p class="small">
          <a href={withQuery(to('runs', run_id, 'logs'), { phase: phase! })}>The log at this error</a>
        </p>
      )}
    </>
  )
}
