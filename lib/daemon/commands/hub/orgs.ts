// `orgs`: the tenants of a hub.

import type { Static } from 'typebox'
import { commandLine } from '../../../called-as.ts'
import { CreateOrg, DeleteOrg, GetKeys, GetOrg, ListOrgs, RotateKeys } from '../../../wire/hub-admin-calls.ts'
import { homeFolder } from '../../home.ts'
import { hubOf } from '../hub-client.ts'
import { orgOf } from './names.ts'
import { confirmed, done, list, type Options, type PageOptions, pageOf, record, relative } from './output.ts'

export async function listOrgs(options: PageOptions): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const found = await client.call(ListOrgs, pageOf(options))
  list(options, found, found.orgs, ({ slug, display_name, my_role, id }, paint) => [
    paint.bold(slug),
    display_name,
    `you: ${my_role}`,
    paint.dim(`${id}`),
  ])
}

export async function showOrg(wanted: string, options: Options): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const org = await client.call(GetOrg, { org_id: (await orgOf(client, wanted)).id })
  record(options, org, () => ({
    title: org.slug,
    facts: [
      ['name', org.display_name],
      ['id', `${org.id}`],
      ['your role', org.my_role],
      ['created', relative(org.created_at)],
    ],
    sections: [
      ['members', org.members.map(({ username, role }) => [username, role])],
      [
        'scopes',
        org.scopes.map(({ slug, member_count, team_count }) => [
          `@${slug}`,
          `${team_count} teams`,
          `${member_count} members`,
        ]),
      ],
    ],
  }))
}

export async function createOrg(slug: string, options: Options & { name?: string }): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const org = await client.call(CreateOrg, { slug, display_name: options.name ?? slug })
  done(options, org, `created org ${slug}; next: ${commandLine('realms', 'create', 'REALM', '--org', slug)}`)
}

export async function deleteOrg(wanted: string, options: Options & { yes?: boolean }): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const org = await orgOf(client, wanted)
  await confirmed(`Delete org ${org.slug} with its realms, scopes, teams and runs?`, options)
  await client.call(DeleteOrg, { org_id: org.id })
  done(options, { id: org.id }, `deleted org ${org.slug}`)
}

/** The public keys with which daemons verify dispatch tokens, the current one first. */
export async function showKeys(wanted: string | undefined, options: Options): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const org = await orgOf(client, wanted)
  tellKeys(options, org.slug, await client.call(GetKeys, { org_id: org.id }))
}

export async function rotateKeys(
  wanted: string | undefined,
  options: Options & { revokePrevious?: boolean; yes?: boolean },
): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const org = await orgOf(client, wanted)
  const { revokePrevious: revoke_previous = false } = options
  const until = revoke_previous ? 'daemons refuse the previous ones at once' : 'the previous one is accepted for a day'
  await confirmed(`Give org ${org.slug} a new dispatch key? Then ${until}.`, options)
  tellKeys(options, org.slug, await client.call(RotateKeys, { org_id: org.id, revoke_previous }))
}

function tellKeys(options: Options, slug: string, keys: Static<typeof GetKeys.data>): void {
  record(options, keys, () => ({
    title: `dispatch keys of ${slug}`,
    facts: keys.dispatch_keys.map(({ kid, not_after }) => [
      kid,
      not_after === undefined ? `current, since ${relative(keys.rotated_at)}` : `accepted until ${relative(not_after)}`,
    ]),
    sections: [
      [
        'public key',
        keys.dispatch_public_key
          .trim()
          .split('\n')
          .map(line => [line]),
      ],
    ],
  }))
}
