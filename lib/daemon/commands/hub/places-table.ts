// The commands `realms`, `orgs` and `scopes`.

import { type Group, inOrg, named, option, page, yes } from './entry.ts'

const realms = () => import('./realms.ts')
const orgs = () => import('./orgs.ts')
const scopes = () => import('./scopes.ts')

export const PLACES: readonly Group[] = [
  {
    word: 'realms',
    does: 'the realms of a hub: where daemons enrol and runs are dispatched',
    entries: [
      {
        usage: 'list',
        does: 'list your realms (default)',
        example: '--org acme',
        options: [option('--org <org>', 'only those of this org'), ...page],
        isDefault: true,
        run: async options => (await realms()).listRealms(options),
      },
      {
        usage: 'show <realm>',
        does: 'show a realm with its members, teams, daemons and dispatch key',
        example: 'prod',
        run: async (options, realm) => (await realms()).showRealm(realm, options),
      },
      {
        usage: 'create <slug>',
        does: 'create a realm, of which you become an admin',
        example: 'prod --org acme --name Production',
        options: [inOrg, named],
        run: async (options, slug) => (await realms()).createRealm(slug, options),
      },
      {
        usage: 'delete <realm>',
        does: 'delete a realm with its daemons and what the hub has of its runs',
        example: 'staging --yes',
        options: [yes],
        run: async (options, realm) => (await realms()).deleteRealm(realm, options),
      },
      {
        usage: 'add-team <realm> <team>',
        does: 'put a team on the list of what the daemons of a realm run',
        example: 'prod @acme/repo-report',
        run: async (options, realm, team) => (await realms()).addTeam(realm!, team!, options),
      },
      {
        usage: 'remove-team <realm> <team>',
        does: 'take a team off that list',
        example: 'prod @acme/repo-report',
        run: async (options, realm, team) => (await realms()).removeTeam(realm!, team!, options),
      },
    ],
  },
  {
    word: 'orgs',
    does: 'the orgs of a hub: its tenants',
    entries: [
      {
        usage: 'list',
        does: 'list your orgs (default)',
        example: '',
        options: page,
        isDefault: true,
        run: async options => (await orgs()).listOrgs(options),
      },
      {
        usage: 'show <org>',
        does: 'show an org with its members and scopes',
        example: 'acme',
        run: async (options, org) => (await orgs()).showOrg(org, options),
      },
      {
        usage: 'create <slug>',
        does: 'create an org, which only a site admin may',
        example: 'acme --name "Acme Inc."',
        options: [named],
        run: async (options, slug) => (await orgs()).createOrg(slug, options),
      },
      {
        usage: 'delete <org>',
        does: 'delete an org with everything in it',
        example: 'acme --yes',
        options: [yes],
        run: async (options, org) => (await orgs()).deleteOrg(org, options),
      },
      {
        usage: 'keys [org]',
        does: 'show the keys with which daemons verify dispatch tokens',
        example: 'acme',
        run: async (options, org) => (await orgs()).showKeys(org, options),
      },
      {
        usage: 'rotate-keys [org]',
        does: 'make a new dispatch key',
        example: 'acme --yes',
        options: [option('--revoke-previous', 'refuse the previous keys at once, as after a leak'), yes],
        run: async (options, org) => (await orgs()).rotateKeys(org, options),
      },
    ],
  },
  {
    word: 'scopes',
    does: 'the scopes of a hub: where teams are published',
    entries: [
      {
        usage: 'list',
        does: 'list your scopes (default)',
        example: '--org acme',
        options: [option('--org <org>', 'only those of this org'), ...page],
        isDefault: true,
        run: async options => (await scopes()).listScopes(options),
      },
      {
        usage: 'show <scope>',
        does: 'show a scope with its members',
        example: '@acme',
        run: async (options, scope) => (await scopes()).showScope(scope, options),
      },
      {
        usage: 'create <slug>',
        does: 'create a scope',
        example: 'acme --org acme',
        options: [inOrg, named],
        run: async (options, slug) => (await scopes()).createScope(slug, options),
      },
      {
        usage: 'delete <scope>',
        does: 'delete a scope in which nothing was published',
        example: '@acme --yes',
        options: [yes],
        run: async (options, scope) => (await scopes()).deleteScope(scope, options),
      },
    ],
  },
]
