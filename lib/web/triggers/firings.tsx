// What became of the occasions of a trigger: whether each started a run, and why it did not. A person can start the run of
// an occasion once more.

import { useSignal } from '@preact/signals'
import { ListFirings, RefireTrigger } from '../../wire/calls/triggers.ts'
import { FIRING_REASONS, FIRING_STATES } from '../../wire/records/trigger-words.ts'
import type { FiringRecord } from '../../wire/records/triggers.ts'
import { ActionButton, type Work } from '../kit/actions.tsx'
import { call } from '../kit/api.ts'
import { Select } from '../kit/fields.tsx'
import { List, useList } from '../kit/lists.tsx'
import { LongText } from '../kit/parts.tsx'
import { filters, to, withQuery } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { durationOf, When } from '../kit/time.tsx'
import { Delivery, DeliveryLine } from './hook-parts.tsx'
import type { Shown } from './place.ts'
import { clockOf, zoneOf } from './times.tsx'
import { FATES, fateOf, REASONS, wordOf } from './words.ts'

/** Nobody knows who sent these, or what: there is nothing to start. */
const NOT_ADMITTED: readonly FiringRecord['reason'][] = ['signature', 'timestamp', 'body', 'too_large', 'scheme']
/** Below this, a start counts as being on time. */
const LATE_MS = 1_000

interface Props {
  of: Shown
  mayChange: boolean
  /** Is called when a person has started a run. */
  done(): void
}

export function Firings({ of: trigger, mayChange, done }: Props) {
  const { chosen, filter } = filters('state', 'reason')
  const { state, reason } = chosen
  const wanted = {
    ...(state !== '' && { state: state as FiringRecord['state'] }),
    ...(reason !== '' && { reason: reason as NonNullable<FiringRecord['reason']> }),
  }
  const found = useList(`firings ${trigger.id} ${state} ${reason}`, page =>
    call(ListFirings, { trigger_id: trigger.id, ...wanted, ...page }),
  )
  const again = () => {
    found.again()
    done()
  }
  return (
    <section aria-labelledby="firings">
      <div class="row between filters">
        <h2 id="firings">What it did</h2>
        <search class="row">
          <Select
            label="State"
            {...filter('state')}
            of={[['', 'all'], ...FIRING_STATES.map(each => [each, each] as const)]}
          />
          <Select
            label="Reason"
            {...filter('reason')}
            of={[['', 'all'], ...FIRING_REASONS.map(each => [each, REASONS[each]] as const)]}
          />
          <a class="button plain" href={withQuery(to('runs'), { started_by: `${trigger.kind}:${trigger.name}` })}>
            Its runs
          </a>
        </search>
      </div>
      <List of={found} none={<p>{state + reason === '' ? 'Nothing has come yet.' : 'Nothing fits these filters.'}</p>}>
        {firings => (
          <ul class="files firings">
            {firings.map(firing => (
              <Firing key={firing.id} of={firing} tz={zoneOf(trigger)} mayChange={mayChange} done={again} />
            ))}
          </ul>
        )}
      </List>
    </section>
  )
}

interface FiringProps {
  of: FiringRecord
  tz: string
  mayChange: boolean
  done(): void
}

function Firing({ of: firing, tz, mayChange, done }: FiringProps) {
  const { at, until, count, state, reason, detail, run_id, run_state, late_ms, manual } = firing
  const fate = fateOf(firing)
  return (
    <li class="firing">
      <State of={fate} bare word={run_id === null ? state : FATES[fate]} />
      <div class="what">
        <p>
          <strong>{clockOf(at, tz)}</strong>
          {until !== null && <strong> to {clockOf(until, tz)}</strong>} {state}
          {count > 1 && `, ${count.toLocaleString('en')} occasions`}
          {manual && <span class="wrap">, by hand of {manual.by}</span>}
          {late_ms !== null && late_ms >= LATE_MS && state === 'started' && !manual && `, ${durationOf(late_ms)} late`}
          {reason !== null && `: ${wordOf(REASONS, reason)}`}
          {run_id !== null && (
            <>
              {' · '}
              <a href={to('runs', run_id)}>{run_state ? `run ${wordOfRun(run_state)}` : 'its run'}</a>
            </>
          )}
        </p>
        <DeliveryLine of={firing} />
        {detail !== null && (
          <p class="quiet small">
            <LongText text={detail} />
          </p>
        )}
        {firing.deliveries !== null && <Delivery of={firing} />}
      </div>
      <span class="quiet small when">
        <When at={until ?? at} />
      </span>
      {mayChange && state !== 'waiting' && !NOT_ADMITTED.includes(reason) && <Again of={firing} done={done} />}
    </li>
  )
}

const wordOfRun = (state: string): string => (state === 'awaiting_input' ? 'waits for a person' : state)

/** Starts the run of an occasion once more. Where a run of it exists, or may exist, it asks first. */
function Again({ of: { id, state, reason, run_id, count }, done }: { of: FiringRecord; done(): void }) {
  const told = useSignal('')
  const refire =
    (again: boolean): Work =>
    async send => {
      const made = await send(RefireTrigger, { firing_id: id, ...(again && { again }) })
      told.value =
        made.run_id !== null ? 'It runs.' : `${made.state}: ${made.detail ?? wordOf(REASONS, made.reason ?? '')}`
    }
  const question =
    state === 'started'
      ? `This occasion has its run ${run_id?.slice(0, 8)}. A second one does its work again.`
      : reason === 'copy'
        ? 'Another copy of this home may have done it already.'
        : null
  return (
    <div class="again">
      {question === null ? (
        <ActionButton plain send={refire(false)} done={done}>
          {count > 1 ? 'Start the first' : 'Start it after all'}
        </ActionButton>
      ) : (
        <ActionButton question={question} send={refire(true)} done={done}>
          {state === 'started' ? 'Start again' : 'Start it here'}
        </ActionButton>
      )}
      {told.value !== '' && (
        <p class="quiet small wrap" role="status">
          {told.value}
        </p>
      )}
    </div>
  )
}
