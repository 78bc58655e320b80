// What only hooks have on the page of a trigger: where the sender posts to, the secrets that fit, and what was delivered.

import { useSignal } from '@preact/signals'
import { sizeText } from '../../size.ts'
import { ListFirings, UpdateTrigger } from '../../wire/calls/triggers.ts'
import type { FiringRecord } from '../../wire/records/triggers.ts'
import { ConfirmButton, FormCard } from '../kit/actions.tsx'
import { call } from '../kit/api.ts'
import { bound, Field } from '../kit/fields.tsx'
import { textOf } from '../kit/forms.tsx'
import { Failure, useLoaded } from '../kit/parts.tsx'
import { When } from '../kit/time.tsx'
import type { Shown } from './place.ts'

interface Props {
  of: Shown
  mayChange: boolean
  done(): void
}

/** The address of a hook, and its secrets, of which at most two fit at a time. */
export function HookAddress({ of: trigger, mayChange, done }: Props) {
  const { id: trigger_id, url, scheme, secrets = [] } = trigger
  const fitting = secrets.filter(({ expires_at }) => expires_at === null)
  return (
    <section aria-labelledby="address">
      <h2 id="address">Where the sender posts to</h2>
      {url !== undefined && (
        <p>
          <code class="wrap">{url}</code>
        </p>
      )}
      <p class="quiet small">
        Signed as {scheme} does it. Whoever knows a secret can start runs: cadre shows none, and this page neither.
      </p>
      <ul class="slots">
        {secrets.map(({ id, created_at, expires_at }) => (
          <li key={id}>
            <span>
              Secret <code>{id.slice(-8)}</code>{' '}
              <span class="quiet small">
                {expires_at === null ? (
                  <>
                    fits, added <When at={created_at} />
                  </>
                ) : (
                  <>
                    fits no more since <When at={expires_at} />
                  </>
                )}
              </span>
            </span>
            {mayChange && expires_at === null && (
              <ConfirmButton
                question={
                  fitting.length > 1
                    ? 'What is signed with it is refused from now on.'
                    : 'It is the only one that fits: every delivery is refused from now on.'
                }
                action={() => call(UpdateTrigger, { trigger_id, expire_secret: id })}
                done={done}
              >
                Let it expire
              </ConfirmButton>
            )}
          </li>
        ))}
      </ul>
      {mayChange && <AddSecret of={trigger} done={done} />}
    </section>
  )
}

function AddSecret({ of: { id: trigger_id }, done }: Pick<Props, 'of' | 'done'>) {
  const secret = useSignal('')
  const add = async () => {
    await call(UpdateTrigger, { trigger_id, add_secret: secret.value })
    secret.value = ''
    done()
  }
  return (
    <details class="part">
      <summary>Change the secret</summary>
      <FormCard label="Add a secret" submit="Add" action={add}>
        <Field label="Secret" type="password" autocomplete="new-password" required {...bound(secret)} />
        <p class="quiet small full-width">
          Two fit at a time. Give the sender the new one, then let the old one expire.
        </p>
      </FormCard>
    </details>
  )
}

/** What a hook keeps and allows, for the list of its facts. */
export function hookFacts(trigger: Shown): [string, string][] {
  const { dedup, id_header, tolerance, max_bytes, keep_days, keep_body } = trigger
  if (trigger.kind !== 'hook') return []
  return [
    ['Two deliveries are the same by', dedup ?? id_header ?? 'the id that the sender gives'],
    ['A signed time may be off by', tolerance ?? ''],
    ['Largest body', max_bytes === undefined ? '' : sizeText(max_bytes)],
    ['A delivery is recognised for', keep_days === undefined ? '' : `${keep_days} days`],
    ['Its body is kept for', keep_body === undefined ? '' : keep_body === 0 ? 'no time' : `${keep_body} days`],
  ]
}

/** The id of a delivery, and how often it came. What was not admitted has no id. */
export function DeliveryLine({ of: { occasion, deliveries } }: { of: FiringRecord }) {
  if (deliveries === null) return null
  const id = /^(rejected|now):/.test(occasion) ? null : occasion
  return (
    <p class="quiet small wrap">
      {id !== null && (
        <>
          delivery <code class="wrap">{id}</code>
        </>
      )}
      {deliveries > 1 && ` came ${deliveries} times`}
    </p>
  )
}

/** The headers and the body of a delivery. They are read when somebody opens them. */
export function Delivery({ of: { id } }: { of: FiringRecord }) {
  const open = useSignal(false)
  return (
    <details
      class="delivery"
      onToggle={event => {
        open.value = event.currentTarget.open
      }}
    >
      <summary class="small">What was delivered</summary>
      {open.value && <Sent id={id} />}
    </details>
  )
}

const read = async (id: string) => (await call(ListFirings, { begins: id, with_body: true, limit: 1 })).firings[0]

function Sent({ id }: { id: string }) {
  const { data, error } = useLoaded(`delivery ${id}`, async () => (await read(id)) ?? null)
  if (!data) return error ? <Failure of={error} /> : <div aria-busy="true" />
  const { delivery } = data
  if (!delivery) return <p class="quiet small">Nothing of it is kept.</p>
  const lines = [...Object.entries(delivery.headers), ...Object.entries(delivery.query).map(named)]
  return (
    <>
      <pre>{lines.map(([name, value]) => `${name}: ${textOf(value)}`).join('\n')}</pre>
      {delivery.body === null ? <p class="quiet small">Its body is not kept.</p> : <pre>{delivery.body}</pre>}
    </>
  )
}

/** A parameter of the address, beside the headers. */
const named = ([name, value]: [string, unknown]): [string, unknown] => [`?${name}`, value]
