// The account of the user: its password. Tokens have a page of their own.

import { useSignal } from '@preact/signals'
import { ChangePassword } from '../../../wire/calls/users.ts'
import { FormCard } from '../../kit/actions.tsx'
import { bound, Check, Field } from '../../kit/fields.tsx'
import { to } from '../../kit/route.ts'
import { me } from '../kit/api.ts'

export function Account() {
  const password = useSignal('')
  const fresh = useSignal('')
  const revoke = useSignal(false)
  const done = useSignal('')
  return (
    <main>
      <header class="top">
        <div>
          <h1>Account</h1>
          <p class="quiet">{me.value?.username}</p>
        </div>
      </header>
      {done.value !== '' && (
        <div class="notice" role="status">
          <p>{done.value}</p>
        </div>
      )}
      <FormCard
        label="Change the password"
        submit="Change"
        send={async send => {
          done.value = ''
          await send(ChangePassword, {
            password: password.value,
            new_password: fresh.value,
            ...(revoke.value && { revoke_tokens: true }),
          })
          password.value = ''
          fresh.value = ''
          done.value = `The password is changed. Your other sessions have ended${revoke.value ? ', and your tokens too' : ''}.`
        }}
      >
        <Field label="Present password" type="password" required autocomplete="current-password" {...bound(password)} />
        <Field
          label="New password (at least 8 characters)"
          type="password"
          required
          minLength={8}
          autocomplete="new-password"
          {...bound(fresh)}
        />
        <Check class="full-width" {...bound(revoke)}>
          Revoke my tokens, too
        </Check>
      </FormCard>
      <p>
        Programs that act for you have <a href={to('tokens')}>tokens</a>.
      </p>
    </main>
  )
}
