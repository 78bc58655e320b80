// `orgs`: the tenants of a hub.

import type { Static } from 'typebox'
import { commandLine } from '../../../program/called-as.ts'
import { GetKeys, RotateKeys } from '../../../wire/calls/dispatch.ts'
import { CreateOrg, DeleteOrg, GetOrg, ListOrgs } from '../../../wire/calls/orgs.ts'
import { type Entry, option } from '../kit/command-table.ts'
import { orgOf } from '../kit/names.ts'
import { doing, named, yes } from './entry.ts'
import { changing, listing, showing } from './forms.ts'
import { confirmed, type Facts, type Options, record, relative } from './output.ts'

export const ENTRIES: readonly Entry[] = [
  listing('list', 'list your orgs', '', {
    call: ListOrgs,
    rows: 'orgs',
    row: ({ slug, display_name, my_role, id }, paint) => [
      paint.bold(slug),
      display_name,
      `you: ${my_role}`,
      paint.dim(`${id}`),
    ],
  }),
  showing('show <org>', 'show an org with its members and scopes', 'acme', {
    find: async (hub, org) => hub.call(GetOrg, { org_id: (await orgOf(hub, org)).id }),
    title: ({ slug }) => slug,
    facts: org => [
      ['name', org.display_name],
      ['id', `${org.id}`],
      ['your role', org.my_role],
      ['created', relative(org.created_at)],
    ],
    sections: ({ members, scopes }) => [
      ['members', members.map(({ username, role }) => [username, role])],
      ['scopes', scopes.map(each => [`@${each.slug}`, `${each.team_count} teams`, `${each.member_count} members`])],
    ],
  }),
  changing('create <slug>', 'create an org; only a site admin may do that', 'acme --name "Acme Inc."', {
    options: [named],
    find: async (_, slug, { name = slug }) => ({ slug, display_name: name }),
    call: (hub, org) => hub.call(CreateOrg, org),
    confirmation: ({ slug }) => `created org ${slug}; next: ${commandLine('realms', 'create', 'REALM', '--org', slug)}`,
  }),
  changing('delete <org>', 'delete an org with everything in it', 'acme --yes', {
    find: orgOf,
    question: ({ slug }) => `Delete org ${slug} with its realms, scopes, teams and runs?`,
    call: (hub, { id }) => hub.call(DeleteOrg, { org_id: id }).then(() => ({ id })),
    confirmation: ({ slug }) => `deleted org ${slug}`,
  }),
  doing('keys [org]', 'show the keys with which daemons verify dispatch tokens', 'acme', {
    run: async (hub, options, wanted) => {
      const { id, slug } = await orgOf(hub, wanted)
      printKeys(options, slug, await hub.call(GetKeys, { org_id: id }))
    },
  }),
  doing('rotate-keys [org]', 'replace the key that signs dispatch tokens', 'acme --yes', {
    options: [option('--revoke-previous', 'refuse the previous keys at once, as after a leak'), yes],
    run: async (hub, options, wanted) => {
      const { id, slug } = await orgOf(hub, wanted)
      const revoke: boolean = options.revokePrevious ?? false
      const until = revoke ? 'daemons refuse the previous ones at once' : 'the previous one is accepted for a day'
      await confirmed(`Give org ${slug} a new dispatch key? Then ${until}.`, options)
      printKeys(options, slug, await hub.call(RotateKeys, { org_id: id, revoke_previous: revoke }))
    },
  }),
]

/** The public keys with which daemons verify dispatch tokens, the current one first. */
function printKeys(options: Options, slug: string, keys: Static<typeof GetKeys.data>): void {
  const pem = keys.dispatch_public_key.trim().split('\n')
  const facts = keys.dispatch_keys.map(({ kid, not_after }): Facts[number] => [
    kid,
    not_after === undefined ? `current, since ${relative(keys.rotated_at)}` : `accepted until ${relative(not_after)}`,
  ])
  record(options, keys, `dispatch keys of ${slug}`, facts, () => [['public key', pem.map(line => [line])]])
}
