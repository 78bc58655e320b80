// What a hook would do with a delivery, as its form stands: before it is saved, and without its signature.

import { useSignal } from '@preact/signals'
import { isObject, type JsonObject, type Json as JsonValue } from '../../json.ts'
import { ListFirings, PreviewTrigger } from '../../wire/calls/triggers.ts'
import type { PreviewRecord } from '../../wire/records/triggers.ts'
import { ActionButton } from '../kit/actions.tsx'
import { call } from '../kit/api.ts'
import { Area, bound } from '../kit/fields.tsx'
import { Json } from '../kit/parts.tsx'
import { State } from '../kit/state.tsx'
import { inPlace, type Place, type Shown } from './place.ts'
import { Notes } from './times.tsx'
import { REASONS, wordOf } from './words.ts'

const SHAPES: Record<string, string> = { starts: 'completed', skipped: 'skipped', refused: 'refused' }

/** `of`: the hook as it is, if it is there already. `changes`: what the form says of it, as the body of a call. */
export function DeliveryPreview({ place, of, changes }: { place: Place; of: Shown | undefined; changes(): object }) {
  const body = useSignal('{}')
  const headers = useSignal('{}')
  const found = useSignal<PreviewRecord | null>(null)
  const look = async () => {
    const sent = { body: jsonOf('Body', body.value), headers: textsIn(jsonOf('Headers', headers.value)) }
    found.value = await call(PreviewTrigger, { ...inPlace(place), ...(of && ownOf(of)), ...changes(), ...sent })
  }
  const takeLast = async ({ id: trigger_id }: Shown) => {
    const { firings } = await call(ListFirings, { trigger_id, with_body: true, limit: 20 })
    const last = firings.find(({ delivery }) => delivery?.body)?.delivery
    if (!last) throw new Error('No body of a delivery is kept.')
    body.value = last.body!
    headers.value = JSON.stringify(last.headers, null, 2)
  }
  const outcome = found.value?.outcome
  return (
    <section class="card preview" aria-label="Preview">
      <h2>What it would do with a delivery</h2>
      <p class="quiet small">As the form stands, before it is saved. Nothing starts.</p>
      <Area label="Body (JSON)" class="fields-row" rows={6} {...bound(body)} />
      <Area label="Headers (JSON)" class="fields-row" rows={3} {...bound(headers)} />
      <div class="row fields-row">
        <ActionButton plain send={look}>
          Try it
        </ActionButton>
        {of && (
          <ActionButton plain send={() => takeLast(of)}>
            Take the last delivery
          </ActionButton>
        )}
      </div>
      {outcome && (
        <div role="status">
          <p class="fields-row">
            <State
              of={SHAPES[outcome.state] ?? 'pending'}
              word={[outcome.state, outcome.reason && wordOf(REASONS, outcome.reason)].filter(Boolean).join(': ')}
            />
          </p>
          {outcome.detail !== null && <p class="quiet small wrap">{outcome.detail}</p>}
          {outcome.inputs && <Json of={outcome.inputs} />}
        </div>
      )}
      {found.value && <Notes of={found.value.notes} />}
    </section>
  )
}

function jsonOf(what: string, text: string): JsonValue {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`${what}: type JSON`)
  }
}

const textsIn = (value: JsonValue): Record<string, string> =>
  isObject(value)
    ? Object.fromEntries(Object.entries(value as JsonObject).map(([name, each]) => [name, String(each)]))
    : {}

const OWN = [
  ...(['scheme', 'header', 'algorithm', 'encoding', 'prefix', 'payload', 'key', 'timestamp_header', 'unit'] as const),
  ...(['id_header', 'dedup'] as const),
]

/** How its sender signs, and what makes two deliveries the same. */
const ownOf = (trigger: Shown) =>
  Object.fromEntries(OWN.flatMap(name => (trigger[name] === undefined ? [] : [[name, trigger[name]]])))
