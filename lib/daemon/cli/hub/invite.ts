// `invite`: people join a realm by an invitation, which works once and for 14 days.

import { CadreError } from '../../../error.ts'
import { commandLine } from '../../../program/called-as.ts'
import { AcceptInvitation, Invite, ListInvitations, RevokeInvitation } from '../../../wire/calls/realm-members.ts'
import { homeFolder } from '../../home/home.ts'
import { HubClient } from '../../link/hub-client.ts'
import { type Entry, option } from '../kit/command-table.ts'
import { hubAddress, hubOf } from '../kit/hub-client.ts'
import { every, realmOf } from '../kit/names.ts'
import { typedSecrets } from '../kit/typed-secret.ts'
import { doing, inRealm } from './entry.ts'
import { changing, listing } from './forms.ts'
import { done, type Options, relative, secret } from './output.ts'

export const ENTRIES: readonly Entry[] = [
  doing('create', 'print an invitation that works once, within 14 days', '--realm prod --role operator', {
    options: [
      inRealm,
      option('--role <role>', 'the role that they get (member)').choices(['member', 'operator', 'admin']),
      option('--user <username>', 'only this user name may accept it'),
    ],
    run: async (hub, options) => {
      const { id: realm_id, slug } = await realmOf(hub, options.realm)
      const made = await hub.call(Invite, { realm_id, role: options.role, username: options.user })
      const accept = commandLine('invite', 'accept', '--hub', hub.url, '--username', options.user ?? 'NAME')
      secret(
        options,
        made,
        `an invitation to be ${made.role} of ${slug}; it ends ${relative(made.expires_at)}`,
        `the invited person types it into: ${accept}`,
      )
    },
  }),
  listing('list', 'list the invitations that can still be accepted', '--realm prod', {
    options: [inRealm],
    call: ListInvitations,
    where: async (hub, { realm }) => ({ realm_id: (await realmOf(hub, realm)).id }),
    rows: 'invitations',
    row: ({ id, username, role, created_by, expires_at }, paint) => [
      paint.bold(username ?? 'anyone'),
      role,
      `by ${created_by}`,
      `ends ${relative(expires_at)}`,
      paint.dim(id),
    ],
  }),
  changing('revoke <id>', 'revoke an invitation', '01a1fd72 --realm prod', {
    options: [inRealm],
    find: async (hub, id, { realm }) => (id.length === 36 ? id : await wholeId(hub, id, realm)),
    call: (hub, id) => hub.call(RevokeInvitation, { id }),
    confirmation: id => `revoked invitation ${id}`,
  }),
  doing(
    'accept',
    'join a realm; reads the invitation, and the password of a new account, from stdin',
    '--username ada --hub https://hub.example.com',
    {
      options: [
        option('--username <name>', 'make a new account of this name; without it, the account that is signed in joins'),
      ],
      alone: accept,
    },
  ),
]

/** The invitation to the realm whose id has this beginning. */
async function wholeId(hub: HubClient, begins: string, realm: string | undefined): Promise<string> {
  const { id: realm_id, slug } = await realmOf(hub, realm)
  const all = await every(hub, ListInvitations, 'invitations', { realm_id })
  const [found, ...more] = all.filter(({ id }) => id.startsWith(begins))
  if (found && more.length === 0) return found.id
  throw new CadreError(
    'not_found',
    `${found ? 'several invitations' : 'no invitation'} to ${slug} begin with ${begins}`,
  )
}

/** Joins with a new account of this name, or with the account that is signed in. */
async function accept(options: Options & { username?: string }): Promise<void> {
  const home = homeFolder(options.home)
  const { username } = options
  const hub = username === undefined ? await hubOf(home, options) : new HubClient(await hubAddress(home, options), null)
  const prompts = username === undefined ? [] : [`password of the new account ${username}: `]
  const [token = '', password] = await typedSecrets(['invitation: ', ...prompts])
  const account = username === undefined ? {} : { username, password: password! }
  const reply = await hub.call(AcceptInvitation, { token, ...account })
  const next = username === undefined ? [] : [`sign in: ${commandLine('login', reply.user.username, '--hub', hub.url)}`]
  done(options, reply, `${reply.user.username} is ${reply.role} of realm ${reply.realm_id}`, ...next)
}
