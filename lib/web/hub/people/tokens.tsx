// The tokens of the user: what each grants, and new ones, whose secret is shown once.

import { useSignal } from '@preact/signals'
import { ListTokens, RevokeToken, RotateToken } from '../../../wire/calls/auth.ts'
import type { Token } from '../../../wire/records/hub-records.ts'
import { ActionButton } from '../../kit/actions.tsx'
import { command } from '../../kit/api.ts'
import { CopyableSecret } from '../../kit/copyable.tsx'
import { bound, Check } from '../../kit/fields.tsx'
import { List, useList } from '../../kit/lists.tsx'
import { State } from '../../kit/state.tsx'
import { now, UpcomingTime, When } from '../../kit/time.tsx'
import { hub } from '../kit/api.ts'
import { realmName } from '../kit/realm-choice.tsx'
import { GrantMatrix } from './grant.tsx'
import { NewToken } from './new-token.tsx'

export function Tokens() {
  const found = useList('tokens', page => hub(ListTokens, page))
  const secret = useSignal<{ text: string; type: string } | null>(null)
  const all = useSignal(false)
  return (
    <main>
      <header class="top">
        <h1>Tokens</h1>
      </header>
      {secret.value && (
        <CopyableSecret title="The secret of the token." text={secret.value.text}>
          {secret.value.type === 'realm' && (
            <p class="small quiet">
              Enrol a daemon with it, on its machine:{' '}
              <code>
                {command} enrol --hub {location.origin}
              </code>
            </p>
          )}
        </CopyableSecret>
      )}
      <NewToken
        onCreated={created => {
          secret.value = created
          found.again()
        }}
      />
      <h2>Your tokens</h2>
      <Check class="small" {...bound(all)}>
        Show those that have ended, and sessions
      </Check>
      <List of={found} none={<p>You have no token.</p>}>
        {tokens => {
          const listed = all.value ? tokens : tokens.filter(each => each.kind === 'durable' && !hasEnded(each))
          return listed.length === 0 ? (
            <p class="quiet">You have no token that works, except your session here.</p>
          ) : (
            <ol class="phases">
              {listed.map(each => (
                <li key={each.id}>
                  <TokenItem
                    token={each}
                    again={found.again}
                    onRotated={created => {
                      secret.value = created
                    }}
                  />
                </li>
              ))}
            </ol>
          )
        }}
      </List>
    </main>
  )
}

const hasEnded = ({ revoked_at, expires_at }: Token): boolean =>
  revoked_at !== null || (timeOf(expires_at) ?? Number.POSITIVE_INFINITY) <= now.value

function TokenItem({
  token,
  again,
  onRotated,
}: {
  token: Token
  again(): void
  onRotated(secret: { text: string; type: string }): void
}) {
  const ended = hasEnded(token)
  const word =
    token.revoked_at !== null ? 'revoked' : ended ? 'expired' : token.kind === 'session' ? 'session' : 'works'
  return (
    <details class="token">
      <summary>
        <State of={ended ? 'cancelled' : 'completed'} word={word} />
        <span class="name">{token.name}</span>
        <span class="quiet small">
          {token.type === 'realm'
            ? `realm token for ${token.realm_ids.map(realmName).join(', ')}`
            : `user token, ${token.permissions.access}`}
        </span>
        <span class="quiet small end">
          {token.last_used_at === null ? (
            'never used'
          ) : (
            <>
              used <When at={timeOf(token.last_used_at)} />
            </>
          )}
        </span>
      </summary>
      <div class="opened">
        <p class="facts small quiet">
          <span>
            created <When at={timeOf(token.created_at)} />
          </span>
          {token.expires_at && (
            <span>
              ends <UpcomingTime at={timeOf(token.expires_at)} />
            </span>
          )}
          <span>id {token.id}</span>
        </p>
        <GrantMatrix of={token.grant} />
        {!ended && (
          <div class="row">
            {token.kind === 'durable' && (
              <ActionButton
                question={`Give ${token.name} a new secret? The old one stops working at once.`}
                send={async send => {
                  const rotated = await send(RotateToken, { id: token.id })
                  onRotated({ text: rotated.token, type: token.type })
                  again()
                }}
              >
                New secret
              </ActionButton>
            )}
            <ActionButton
              question={`Revoke ${token.name}? Whoever uses it is refused from now on.`}
              send={send => send(RevokeToken, { id: token.id })}
              done={again}
            >
              Revoke
            </ActionButton>
          </div>
        )}
      </div>
    </details>
  )
}

const timeOf = (iso: string | null): number | null => (iso === null ? null : Date.parse(iso))
