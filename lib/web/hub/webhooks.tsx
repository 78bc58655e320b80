// The webhooks of a realm, and what happened to their messages.

import { useSignal } from '@preact/signals'
import {
  AddWebhook,
  ListDeliveries,
  ListWebhooks,
  RedeliverMessage,
  RemoveWebhook,
  TakeOverWebhook,
} from '../../wire/calls/webhooks.ts'
import { HOOK_EVENTS } from '../../wire/records/hook-events.ts'
import type { WebhookDelivery } from '../../wire/records/hooks.ts'
import type { Realm } from '../../wire/records/hub-records.ts'
import { ActionButton, FormCard } from '../kit/actions.tsx'
import { CopyableSecret } from '../kit/copyable.tsx'
import { bound, Checks, Field } from '../kit/fields.tsx'
import { Rows, useList } from '../kit/lists.tsx'
import { State } from '../kit/state.tsx'
import { UpcomingTime, When } from '../kit/time.tsx'
import { hub } from './kit/api.ts'
import { forbids, may } from './kit/realm-choice.tsx'

const STATES: Record<WebhookDelivery['state'], string> = {
  waiting: 'queued',
  delivered: 'completed',
  failed: 'failed',
  unknown: 'crashed',
}

const hostOf = (url: string): string => URL.parse(url)?.host ?? url

export function Webhooks({ realm }: { realm: Realm }) {
  const { id: realm_id } = realm
  const found = useList(`webhooks ${realm_id}`, page => hub(ListWebhooks, { realm_id, ...page }))
  const sent = useList(`deliveries ${realm_id}`, page => hub(ListDeliveries, { realm_id, ...page }))
  const url = useSignal('')
  const events = useSignal<WebhookDelivery['event'][]>(['run.failed'])
  const secret = useSignal('')
  const isAdmin = may(realm, 'admin')
  return (
    <>
      {secret.value !== '' && (
        <CopyableSecret title="The secret of the webhook." text={secret.value}>
          <p class="small quiet">The receiver verifies with it that a message comes from this hub.</p>
        </CopyableSecret>
      )}
      <Rows
        of={found}
        none={<p>No webhook is set up. Add one to notify another system.</p>}
        name={each => each.id}
        columns={[
          { title: 'Address', class: 'wrap', cell: each => each.url },
          { title: 'Events', cell: each => each.events.join(', ') },
          {
            title: 'Owner',
            cell: each => (
              <>
                {each.owner}
                {each.state === 'stopped' && (
                  <p class="quiet small">is no admin of the realm any more, so nothing is delivered</p>
                )}
              </>
            ),
          },
          { title: 'Since', cell: each => <When at={each.created_at} /> },
          {
            title: '',
            class: 'end',
            cell: each => (
              <>
                {each.state === 'stopped' && (
                  <ActionButton
                    forbidden={forbids(realm, 'admin')}
                    question={`Take over the webhook to ${each.url}? It will act for you.`}
                    send={send => send(TakeOverWebhook, { realm_id, id: each.id })}
                    done={found.again}
                  >
                    Take over
                  </ActionButton>
                )}
                <ActionButton
                  forbidden={forbids(realm, 'admin')}
                  question={`Remove the webhook to ${each.url}? It gets no message any more, and its log of deliveries is removed with it.`}
                  typed={hostOf(each.url)}
                  send={send => send(RemoveWebhook, { realm_id, id: each.id })}
                  done={found.again}
                >
                  Remove
                </ActionButton>
              </>
            ),
          },
        ]}
      />
      {isAdmin && (
        <FormCard
          label="Add a webhook"
          submit="Add"
          send={async send => {
            const made = await send(AddWebhook, { realm_id, url: url.value.trim(), events: events.value })
            secret.value = made.secret
            url.value = ''
            found.again()
          }}
        >
          <Field label="Address" type="url" required placeholder="https://example.com/hook" {...bound(url)} />
          <Checks label="Events" {...bound(events)} of={HOOK_EVENTS.map(event => [event, event] as const)} />
        </FormCard>
      )}
      <h2>Deliveries</h2>
      <Rows
        of={sent}
        none={<p>No message was sent yet.</p>}
        name={each => each.id}
        columns={[
          {
            title: 'Message',
            cell: each => (
              <>
                {each.event}
                <br />
                <code class="quiet">{each.subject}</code>
              </>
            ),
          },
          { title: 'State', cell: each => <State of={STATES[each.state]} word={each.state} /> },
          { title: 'Attempts', class: 'number', cell: each => each.attempts },
          { title: 'Reply', class: 'wrap', cell: each => each.error ?? each.status ?? '–' },
          { title: 'Next', cell: each => <UpcomingTime at={each.next_at} /> },
          { title: 'When', cell: each => <When at={each.created_at} /> },
          may(realm, 'operator') && {
            title: '',
            class: 'end',
            cell: each =>
              each.finished_at !== null && (
                <ActionButton
                  question={`Send ${each.event} again? The receiver gets it under the same id.`}
                  send={send => send(RedeliverMessage, { realm_id, delivery_id: each.id })}
                  done={sent.again}
                >
                  Send again
                </ActionButton>
              ),
          },
        ]}
      />
    </>
  )
}
