// Starts slots of the past that were missed. What would start is shown first.

import { useSignal } from '@preact/signals'
import { BackfillTrigger } from '../../wire/calls/triggers.ts'
import type { BackfillRecord } from '../../wire/records/triggers.ts'
import { ActionButton, useAction, type Work } from '../kit/actions.tsx'
import { Refusal } from '../kit/api.ts'
import { serverNow } from '../kit/clock.ts'
import { Field, handleSubmit } from '../kit/fields.tsx'
import { Failure } from '../kit/parts.tsx'
import type { Shown } from './place.ts'
import { Slots } from './times.tsx'

const WEEK_MS = 7 * 24 * 3_600_000

/** A time as a field has it, in the zone of this browser. */
function localOf(at: number): string {
  const time = new Date(at)
  return new Date(at - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

function momentOf(what: string, local: string): number {
  const at = new Date(local).getTime()
  if (Number.isNaN(at)) throw new Error(`${what}: type a date and a time`)
  return at
}

export function BackfillForm({ of: { id: trigger_id, created_at }, done }: { of: Shown; done(): void }) {
  const texts = useSignal({ from: localOf(serverNow() - WEEK_MS), to: localOf(serverNow()) })
  const found = useSignal<BackfillRecord | null>(null)
  const started = useSignal<number | null>(null)
  /** Some may have started where this home was copied from. */
  const doubt = useSignal<string | null>(null)
  const { busy, error, run } = useAction()
  const set = (name: 'from' | 'to') => (value: string) => {
    texts.value = { ...texts.value, [name]: value }
    found.value = null
    doubt.value = null
    started.value = null
  }
  const body = () => ({
    ...{ trigger_id, from: momentOf('From', texts.value.from), to: momentOf('Before', texts.value.to) },
  })
  const look: Work = async send => {
    started.value = null
    found.value = await send(BackfillTrigger, { ...body(), dry_run: true })
  }
  const start =
    (yes: boolean): Work =>
    async send => {
      try {
        const { firings } = await send(BackfillTrigger, { ...body(), ...(yes && { yes }) })
        found.value = null
        doubt.value = null
        started.value = firings.length
      } catch (thrown) {
        if (!(thrown instanceof Refusal) || thrown.code !== 'conflict' || yes) throw thrown
        doubt.value = thrown.message
      }
    }
  const { slots = [], left = 0 } = found.value ?? {}
  const isEarlier = slots.some(({ at }) => at < created_at)
  return (
    <form class="card" aria-label="Backfill" onSubmit={handleSubmit(() => run(look))}>
      <p class="quiet">
        Starts slots of the past that have no run, one after the other. Those that were skipped for another reason than
        that nothing looked at them stay as they are.
      </p>
      <div class="row fields-row">
        <Field label="From" type="datetime-local" required value={texts.value.from} set={set('from')} />
        <Field label="Before" type="datetime-local" required value={texts.value.to} set={set('to')} />
        <button type="submit" class="plain" disabled={busy}>
          Show the slots
        </button>
      </div>
      <Failure of={error} />
      <div role="status">
        {started.value !== null && <p>{runsStart(started.value)}, the oldest first.</p>}
        {found.value && slots.length === 0 && <p>No slot in this time is left to start.</p>}
        {slots.length > 0 && (
          <>
            <div class="slots-box">
              <Slots of={slots} />
            </div>
            {left > 0 && <p class="quiet small">These are the oldest; {left} more are left for another backfill.</p>}
            {isEarlier && <p class="quiet small">Some of them were due before this trigger was added.</p>}
            {doubt.value === null ? (
              <ActionButton question={`${runsStart(slots.length)}.`} send={start(false)} done={done}>
                Start them
              </ActionButton>
            ) : (
              <ActionButton question={doubt.value} send={start(true)} done={done}>
                Start them all the same
              </ActionButton>
            )}
          </>
        )}
      </div>
    </form>
  )
}

const runsStart = (count: number): string =>
  count === 1 ? 'One run starts' : `${count} runs start, one after the other`
