// `invite`: people join a realm by an invitation, which works once and for 14 days.

import { commandLine } from '../../../called-as.ts'
import { CadreError } from '../../../error.ts'
import { line } from '../../../printable.ts'
import { print, printJson, tell } from '../../../terminal.ts'
import { AcceptInvitation, Invite, ListInvitations, RevokeInvitation } from '../../../wire/hub-admin-calls.ts'
import { homeFolder } from '../../home.ts'
import { HubClient } from '../../link/link.ts'
import { hubAddress, hubOf } from '../hub-client.ts'
import { typedSecrets } from '../typed-secret.ts'
import { every, realmOf } from './names.ts'
import { done, list, type Options, type PageOptions, pageOf, relative } from './output.ts'

interface InRealm {
  realm?: string
}

/** Prints the invitation, which the hub never shows again. `user` is the only account that may accept it. */
export async function invite(options: Options & InRealm & { role?: string; user?: string }): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const realm = await realmOf(client, options.realm)
  const { role, user } = options
  const made = await client.call(Invite, {
    realm_id: realm.id,
    ...(role !== undefined && { role }),
    ...(user !== undefined && { username: user }),
  })
  if (options.json) return printJson(made)
  print(line`${made.token}`)
  tell(
    line`this is shown once: an invitation to be ${made.role} of ${realm.slug}; it ends ${relative(made.expires_at)}`,
    line`whoever gets it types it into: ${commandLine('invite', 'accept', '--hub', client.url, '--username', user ?? 'NAME')}`,
  )
}

export async function listInvitations(options: PageOptions & InRealm): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const { id: realm_id } = await realmOf(client, options.realm)
  const found = await client.call(ListInvitations, { realm_id, ...pageOf(options) })
  list(options, found, found.invitations, ({ id, username, role, created_by, expires_at }, paint) => [
    paint.bold(username ?? 'anyone'),
    role,
    `by ${created_by}`,
    `ends ${relative(expires_at)}`,
    paint.dim(id),
  ])
}

/** `id` may be the beginning of an id of the realm. */
export async function revokeInvitation(wanted: string, options: Options & InRealm): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const id = wanted.length === 36 ? wanted : await wholeId(client, wanted, options)
  done(options, await client.call(RevokeInvitation, { id }), `revoked invitation ${id}`)
}

async function wholeId(client: HubClient, begins: string, { realm }: InRealm): Promise<string> {
  const { id: realm_id, slug } = await realmOf(client, realm)
  const all = await every(async page => {
    const { invitations, total } = await client.call(ListInvitations, { realm_id, ...page })
    return { items: invitations, total }
  })
  const [found, ...more] = all.filter(({ id }) => id.startsWith(begins))
  if (found && more.length === 0) return found.id
  throw new CadreError(
    'not_found',
    `${found ? 'several invitations' : 'no invitation'} to ${slug} begin with ${begins}`,
  )
}

/** Joins with a new account of this name, or with the account that is signed in. */
export async function acceptInvitation(options: Options & { username?: string }): Promise<void> {
  const home = homeFolder(options.home)
  const { username } = options
  if (username === undefined) {
    const client = await hubOf(home, options)
    const [token] = await typedSecrets(['invitation: '])
    return joined(options, client.url, await client.call(AcceptInvitation, { token: token! }), false)
  }
  const url = await hubAddress(home, options)
  const [token, password] = await typedSecrets(['invitation: ', `password of the new account ${username}: `])
  const reply = await new HubClient(url, null).call(AcceptInvitation, { token: token!, username, password: password! })
  joined(options, url, reply, true)
}

function joined(
  options: Options,
  url: string,
  reply: { realm_id: string; role: string; user: { username: string } },
  isNew: boolean,
): void {
  const { username } = reply.user
  const next = isNew ? [`sign in: ${commandLine('login', username, '--hub', url)}`] : []
  done(options, reply, `${username} is ${reply.role} of realm ${reply.realm_id}`, ...next)
}
