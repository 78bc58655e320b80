// Signing in and out: a session is a user token of kind `session`.

import { and, eq, isNull } from 'drizzle-orm'
import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import { CreateSession, DeleteSession } from '../../wire/calls/session.ts'
import { checkPassword, decoyHash } from '../access/accounts.ts'
import { answer } from '../access/answer.ts'
import { record } from '../access/audit.ts'
import { hubKit } from '../access/kit.ts'
import { mintSession } from '../access/tokens.ts'
import type { Hub } from '../core/hub.ts'

export function session(hub: Hub) {
  const { store, signInLimit } = hub
  const { users, tokens } = store
  // This hash is checked when there is no account, so that the time of the reply does not reveal whether the name
  // exists.
  const decoy = decoyHash(hub)

  return resource('session', hubKit(hub), [
    answer(CreateSession, async ({ body: { username, password }, caller }) => {
      const address = caller.address()
      const [account] = await store.db
        .select()
        .from(users)
        .where(and(eq(users.username, username), isNull(users.deleted_at)))
      const attempt = signInLimit.attempt(username, address, async () => {
        const matches = await checkPassword(password, account?.password_hash ?? decoy)
        return matches && account?.suspended_at === null
      })
      const right = await attempt.catch(error => {
        hub.counts.signInFailures.add(1)
        throw error
      })
      if (!right || !account) {
        hub.counts.signInFailures.add(1)
        // The name is logged only if it belongs to an account, because people sometimes type a password in its place.
        const target = account?.username ?? 'no such account'
        await store.write(tx => record(hub, tx, caller, { action: 'session/create_failed', target }))
        throw wrong()
      }
      const { row, token } = await store.write(async tx => {
        // During the check the password may have been changed or the account suspended. The row is written, although
        // nothing in it changes, so that a change at the same time comes wholly before the sign-in or after it.
        const { id, password_hash } = account
        const [live] = await tx
          .update(users)
          .set({ password_hash })
          .where(and(eq(users.id, id), eq(users.password_hash, password_hash), isNull(users.suspended_at)))
          .returning({ id: users.id })
        if (!live) throw wrong()
        const session = await mintSession(hub, tx, account.id)
        const by = { token: { id: session.row.id, user: account }, address: () => address }
        await record(hub, tx, by, { action: 'session/create', target: String(session.row.id) })
        return session
      })
      return { token, expires_at: row.expires_at!, user: { id: account.id, username, site_admin: account.site_admin } }
    }),
    answer(DeleteSession, async ({ caller }) => {
      const { id, kind } = caller.token
      if (kind !== 'session') {
        throw new CadreError('invalid_state', 'this token is not a session; use auth/revoke_token to revoke it')
      }
      await caller.write(async tx => {
        await tx.update(tokens).set({ revoked_at: hub.now() }).where(eq(tokens.id, id))
        await record(hub, tx, caller, { action: 'session/delete', target: String(id) })
      })
      return { id }
    }),
  ])
}

const wrong = () => new CadreError('unauthorized', 'wrong user name or password')
