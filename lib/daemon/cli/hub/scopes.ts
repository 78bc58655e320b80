// `scopes`: the namespaces in which teams are published.

import { commandLine } from '../../../program/called-as.ts'
import { CreateScope, DeleteScope, GetScope, ListScopes } from '../../../wire/calls/scopes.ts'
import { type Entry, option } from '../kit/command-table.ts'
import { ofOrg, orgOf, scopeOf } from '../kit/names.ts'
import { inOrg, named } from './entry.ts'
import { changing, listing, showing } from './forms.ts'
import { relative } from './output.ts'

export const ENTRIES: readonly Entry[] = [
  listing('list', 'list your scopes', '--org acme', {
    options: [option('--org <org>', 'only scopes of this org')],
    call: ListScopes,
    where: ofOrg,
    rows: 'scopes',
    row: ({ slug, display_name, my_role, id }, paint) => [
      paint.bold(`@${slug}`),
      display_name,
      my_role === 'org' ? 'you may read it' : `you: ${my_role}`,
      paint.dim(`${id}`),
    ],
  }),
  showing('show <scope>', 'show a scope with its members', '@acme', {
    find: async (hub, scope) => hub.call(GetScope, { scope_id: (await scopeOf(hub, scope)).id }),
    title: ({ slug }) => `@${slug}`,
    facts: scope => [
      ['name', scope.display_name],
      ['id', `${scope.id}`],
      ['org', `${scope.org_id}`],
      ['your role', scope.my_role],
      ['created', relative(scope.created_at)],
    ],
    sections: ({ members }) => [['members', members.map(({ username, role }) => [username, role])]],
  }),
  changing('create <slug>', 'create a scope', 'acme --org acme', {
    options: [inOrg, named],
    find: async (hub, slug, { org, name }) => ({
      org_id: (await orgOf(hub, org)).id,
      slug,
      ...(name !== undefined && { display_name: name }),
    }),
    call: (hub, scope) => hub.call(CreateScope, scope),
    confirmation: ({ slug }) => `created scope @${slug}; next: ${commandLine('publish', 'FOLDER', '--scope', slug)}`,
  }),
  changing('delete <scope>', 'delete a scope in which nothing was published', '@acme --yes', {
    find: scopeOf,
    question: ({ slug }) => `Delete scope @${slug}?`,
    call: (hub, { id }) => hub.call(DeleteScope, { scope_id: id }).then(() => ({ id })),
    confirmation: ({ slug }) => `deleted scope @${slug}`,
  }),
]
