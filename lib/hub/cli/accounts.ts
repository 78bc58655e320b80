// `bun hub.ts user …`: commands that manage accounts directly in the database. There is no public sign-up.

import { existsSync } from 'node:fs'
import { and, eq, isNull } from 'drizzle-orm'
import { isPostgres } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { createLog } from '../../log/log.ts'
import { hubCommandLine } from '../../program/called-as.ts'
import { line, lines, type Printable } from '../../text/printable.ts'
import { print } from '../../text/terminal.ts'
import { addUser, endTokens, hashPassword, userNamed } from '../access/accounts.ts'
import { record } from '../access/audit.ts'
import { ownedBy } from '../access/owners.ts'
import type { HubConfig } from '../config.ts'
import type { Hub } from '../core/hub.ts'
import { createHub, openConfigured } from '../serve.ts'

const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/
const SHORTEST_PASSWORD = 8

/**
 * Runs `command` on the hub of `config` and prints the text that it returns. Throws `not_found` when there is no
 * database, unless the command `creates` what it needs.
 */
export async function onHub(
  config: HubConfig,
  command: (hub: Hub) => Promise<string | readonly Printable[]>,
  { creates = false } = {},
): Promise<void> {
  const { key, home, database } = config
  if (!creates && !isPostgres(database) && !existsSync(database)) {
    throw new CadreError(
      'not_found',
      `there is no database ${database}: check --database, CADRE_HUB_DATABASE, CADRE_HOME; the first start of a hub makes one`,
    )
  }
  const store = await openConfigured(config, createLog({ level: 'warn' }))
  // What a hub warns of when it starts is about those that serve.
  const hub = createHub({ store, log: createLog({ level: 'error' }), key, home })
  try {
    const message = await command(hub)
    print(typeof message === 'string' ? lines(message) : message)
  } finally {
    await hub.close()
  }
}

export async function addAccount(hub: Hub, name: string, options: { admin?: boolean; passwordStdin?: boolean }) {
  if (!NAME.test(name))
    throw new CadreError('invalid_request', `${name} is not a valid user name; it must match [a-z0-9][a-z0-9._-]*`)
  const { password, shown } = await choosePassword(options.passwordStdin)
  const hash = await hashPassword(hub, password)
  await hub.store.write(async tx => {
    await addUser(hub, tx, name, hash, options.admin ?? false)
    await record(hub, tx, null, { action: 'user add', target: name })
  })
  return `added ${name}${shown}`
}

/** One line an account, with tabs between its columns, so that `cut` can read it. */
export async function listAccounts({ store }: Hub): Promise<Printable[]> {
  const { users } = store
  const rows = await store.db.select().from(users).where(isNull(users.deleted_at)).orderBy(users.username)
  return rows.map(({ id, username, site_admin, suspended_at }) => {
    const state = suspended_at === null ? 'active' : 'suspended'
    return line`${id}\t${username}\t${site_admin ? 'admin' : 'user'}\t${state}`
  })
}

/**
 * Suspends an account. Unlike users/suspend, it also suspends the last site admin, because whoever controls the machine
 * can create another.
 */
export async function suspendAccount(hub: Hub, name: string): Promise<string> {
  const { users } = hub.store
  const { admin, owns } = await hub.store.write(async tx => {
    const row = await userNamed(hub, tx, name)
    const owns = await ownedBy(hub.store, tx, { userId: row.id, realms: undefined, now: hub.now() })
    await tx
      .update(users)
      .set({ suspended_at: row.suspended_at ?? hub.now() })
      .where(eq(users.id, row.id))
    await record(hub, tx, null, { action: 'user suspend', target: name })
    const [admin] = await tx
      .select({ id: users.id })
      .from(users)
      .where(and(eq(users.site_admin, true), isNull(users.suspended_at)))
      .limit(1)
    return { admin, owns }
  })
  const next = hubCommandLine('user', 'add', 'NAME', '--admin')
  const none = admin ? '' : `\nno site admin is left: make one with \`${next}\``
  const rests = [
    ...owns.webhooks.map(({ id }) => `\n  webhook ${id}`),
    ...owns.triggers.map(trigger => `\n  trigger ${trigger.name} (${trigger.id})`),
  ]
  const resting = rests.length === 0 ? '' : `\nthese do nothing until somebody takes them over:${rests.join('')}`
  return `suspended ${name}: its tokens and sessions are refused from now on${resting}${none}`
}

export async function setPassword(hub: Hub, name: string, options: { passwordStdin?: boolean }): Promise<string> {
  const { users } = hub.store
  const { password, shown } = await choosePassword(options.passwordStdin)
  const password_hash = await hashPassword(hub, password)
  await hub.store.write(async tx => {
    const row = await userNamed(hub, tx, name)
    await tx.update(users).set({ password_hash }).where(eq(users.id, row.id))
    await endTokens(hub, tx, row.id, 'sessions')
    await record(hub, tx, null, { action: 'user passwd', target: name })
  })
  return `changed the password of ${name} and ended its sessions${shown}`
}

/** The password from stdin if that was requested, and otherwise a random one, which is shown once. */
async function choosePassword(fromStdin = false): Promise<{ password: string; shown: string }> {
  if (!fromStdin) {
    const password = Buffer.from(crypto.getRandomValues(new Uint8Array(15))).toString('base64url')
    return { password, shown: ` with password ${password} (shown only now)` }
  }
  const password = (await Bun.stdin.text()).replace(/\r?\n$/, '')
  if (password.length >= SHORTEST_PASSWORD) return { password, shown: '' }
  throw new CadreError('invalid_request', `the password on stdin is shorter than ${SHORTEST_PASSWORD} characters`)
}
