// What only hooks have on the page of a trigger: where the sender posts to, the secrets that fit, and what was delivered.

import { useSignal } from '@preact/signals'
import { sizeText } from '../../size.ts'
import { SENDERS } from '../../triggers/hook/senders.ts'
import { ListFirings, UpdateTrigger } from '../../wire/calls/triggers.ts'
import type { FiringRecord } from '../../wire/records/triggers.ts'
import { ActionButton, FormCard, type Work } from '../kit/actions.tsx'
import { call, command } from '../kit/api.ts'
import { textOf } from '../kit/forms.tsx'
import { Failure, useLoaded } from '../kit/parts.tsx'
import { When } from '../kit/time.tsx'
import { NO_SECRET, SecretFields, SecretOnce, secretOf, showOnce } from './hook-secret.tsx'
import type { Place, Shown } from './place.ts'

interface Props {
  of: Shown
  place: Place
  done(): void
}

/** The address of a hook, and its secrets, of which one or two fit at a time. */
export function HookAddress({ of: trigger, place: { mayChange, realm_id }, done }: Props) {
  const { id: trigger_id, secrets = [] } = trigger
  const { name, todo } = SENDERS[trigger.scheme!]
  // A hub that does not know its public address says the path alone.
  const url = new URL(trigger.url ?? '', location.href).href
  const fitting = secrets.filter(({ expires_at }) => expires_at === null)
  return (
    <section aria-labelledby="address">
      <h2 id="address">Where the sender posts to</h2>
      <p>
        <code class="wrap">{url}</code>
      </p>
      <SecretOnce of={trigger} url={url} />
      <p class="small fields-row">
        {name}: {todo}
      </p>
      {realm_id === undefined && (
        <p class="quiet small fields-row">
          A sender outside this machine needs a tunnel that ends here, with{' '}
          <code>CADRE_HOOK_HOSTS=its.host.name {command} serve</code>; or add the hook in a realm of a hub.
        </p>
      )}
      <p class="quiet small fields-row">Whoever knows a secret can start runs. cadre does not show it again.</p>
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
            {mayChange && expires_at === null && fitting.length > 1 && (
              <ActionButton
                question="What is signed with it is refused from now on."
                send={send => send(UpdateTrigger, { trigger_id, expire_secret: id })}
                done={done}
              >
                Let it expire
              </ActionButton>
            )}
          </li>
        ))}
      </ul>
      {mayChange && <AddSecret of={trigger} done={done} />}
    </section>
  )
}

function AddSecret({ of: { id: trigger_id, scheme }, done }: Pick<Props, 'of' | 'done'>) {
  const secret = useSignal(NO_SECRET)
  const add: Work = async send => {
    const given = secretOf(scheme!, secret.value, false)
    await send(UpdateTrigger, { trigger_id, add_secret: given.secret })
    secret.value = NO_SECRET
    showOnce(trigger_id, given)
    done()
  }
  return (
    <details class="part">
      <summary>Change the secret</summary>
      <FormCard label="Add a secret" submit="Add" send={add}>
        <SecretFields scheme={scheme!} draft={secret} isNew={false} />
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
