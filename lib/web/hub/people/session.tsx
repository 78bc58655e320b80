// Signing in, and joining a realm with the link of an invitation.

import { type Signal, useSignal } from '@preact/signals'
import { AcceptInvitation } from '../../../wire/calls/realm-members.ts'
import { useAction } from '../../kit/actions.tsx'
import type { Send } from '../../kit/api.ts'
import { bound, Field, handleSubmit } from '../../kit/fields.tsx'
import { Failure } from '../../kit/parts.tsx'
import { go, to } from '../../kit/route.ts'
import { me, signIn, signOut } from '../kit/api.ts'
import { loadRealms } from '../kit/realm-choice.tsx'

export function SignIn() {
  const username = useSignal('')
  const password = useSignal('')
  const { busy, error, run } = useAction()
  return (
    <main class="sign-in">
      <form
        class="card"
        aria-labelledby="sign-in"
        onSubmit={handleSubmit(() => run(() => signIn(username.value.trim(), password.value)))}
      >
        <h1 id="sign-in">Sign in</h1>
        <CredentialFields username={username} password={password} returning />
        <button type="submit" disabled={busy}>
          Sign in
        </button>
        <Failure of={error} />
        <p class="quiet small">No account? Ask an admin of your realm for an invitation.</p>
      </form>
    </main>
  )
}

function CredentialFields({
  username,
  password,
  returning = false,
}: {
  username: Signal<string>
  password: Signal<string>
  returning?: boolean
}) {
  return (
    <>
      <Field label="User name" required autocomplete="username" {...bound(username)} />
      <Field
        label="Password"
        type="password"
        required
        autocomplete={returning ? 'current-password' : 'new-password'}
        {...bound(password)}
      />
    </>
  )
}

/** `#/join/<token>`: a browser sends the part behind `#` to no server, so it is in no log. */
export function Join({ token }: { token: string }) {
  const username = useSignal('')
  const password = useSignal('')
  const known = useSignal(false)
  const { busy, error, run } = useAction()
  const join = async (send: Send, account: { username?: string; password?: string }) => {
    const { realm_id } = await send(AcceptInvitation, { token, ...account })
    if (account.username && account.password) await signIn(account.username, account.password)
    await loadRealms()
    go(to('realms', realm_id))
  }
  if (known.value && !me.value) return <SignIn />
  return (
    <main class="sign-in">
      <form
        class="card"
        aria-labelledby="join"
        onSubmit={handleSubmit(() =>
          run(send => join(send, me.value ? {} : { username: username.value.trim(), password: password.value })),
        )}
      >
        <h1 id="join">Join a realm</h1>
        {me.value ? (
          <>
            <p>
              You were invited to a realm. You join as <strong>{me.value.username}</strong>.
            </p>
            <div class="row">
              <button type="submit" disabled={busy}>
                Join
              </button>
              <button type="button" class="plain" disabled={busy} onClick={() => run(signOut)}>
                Use another account
              </button>
            </div>
          </>
        ) : (
          <>
            <p>You were invited to a realm. Choose a user name and a password for your new account.</p>
            <CredentialFields username={username} password={password} />
            <button type="submit" disabled={busy}>
              Join
            </button>
            <button
              type="button"
              class="plain"
              onClick={() => {
                known.value = true
              }}
            >
              I have an account
            </button>
          </>
        )}
        <Failure of={error} />
      </form>
    </main>
  )
}
