// `scopes`: the namespaces in which teams are published.

import { commandLine } from '../../../called-as.ts'
import { CreateScope, DeleteScope, GetScope, ListScopes } from '../../../wire/hub-admin-calls.ts'
import { homeFolder } from '../../home.ts'
import { hubOf } from '../hub-client.ts'
import { orgOf, scopeOf } from './names.ts'
import { confirmed, done, list, type Options, type PageOptions, pageOf, record, relative } from './output.ts'

interface InOrg {
  org?: string
}

export async function listScopes(options: PageOptions & InOrg): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const org = options.org === undefined ? {} : { org_id: (await orgOf(client, options.org)).id }
  const found = await client.call(ListScopes, { ...pageOf(options), ...org })
  list(options, found, found.scopes, ({ slug, display_name, my_role, id }, paint) => [
    paint.bold(`@${slug}`),
    display_name,
    my_role === 'org' ? 'you may read it' : `you: ${my_role}`,
    paint.dim(`${id}`),
  ])
}

export async function showScope(wanted: string, options: Options): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const scope = await client.call(GetScope, { scope_id: (await scopeOf(client, wanted)).id })
  record(options, scope, () => ({
    title: `@${scope.slug}`,
    facts: [
      ['name', scope.display_name],
      ['id', `${scope.id}`],
      ['org', `${scope.org_id}`],
      ['your role', scope.my_role],
      ['created', relative(scope.created_at)],
    ],
    sections: [['members', scope.members.map(({ username, role }) => [username, role])]],
  }))
}

export async function createScope(slug: string, options: Options & InOrg & { name?: string }): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const { id: org_id } = await orgOf(client, options.org)
  const { name } = options
  const scope = await client.call(CreateScope, { org_id, slug, ...(name !== undefined && { display_name: name }) })
  done(options, scope, `created scope @${slug}; next: ${commandLine('publish', 'FOLDER', '--scope', slug)}`)
}

export async function deleteScope(wanted: string, options: Options & { yes?: boolean }): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const scope = await scopeOf(client, wanted)
  await confirmed(`Delete scope @${scope.slug}?`, options)
  await client.call(DeleteScope, { scope_id: scope.id })
  done(options, { id: scope.id }, `deleted scope @${scope.slug}`)
}
