// The commands about a hub, as tables: each with its words and an example.

import type { Command } from 'commander'
import { type Act, addCommands, type Entry, option } from '../kit/command-table.ts'
import { collect, runName } from '../kit/options.ts'
import { AUDIT } from './audit-table.ts'
import { doing, HELP_GROUP, inRealm } from './entry.ts'

const inputs = [
  option('-i, --input <name=value>', 'an input; name=@file reads a file, name=@- stdin', collect),
  option('--inputs <file>', 'inputs as a JSON object'),
]

const session = () => import('./session.ts')
const packages = () => import('./publish.ts')

/** Commands of one word. */
const SINGLE: readonly Entry[] = [
  doing(
    'login <username>',
    'sign in at a hub; the password is typed, or read from stdin',
    'ada --hub https://hub.example.com',
    {
      alone: async (options, username: string) => (await session()).login(username, options),
    },
  ),
  doing(
    'realm-token [realm]',
    'print a new token with which a daemon enrols in a realm; you can leave out the realm if you have only one',
    'prod --name build-1',
    {
      options: [option('--name <name>', 'name of the token')],
      run: async (hub, options, realm) => (await session()).realmToken(hub, realm, options),
    },
  ),
  doing(
    'publish <folder>',
    'publish a team as a package; signs it if you have a key (`keys new`)',
    'examples/repo-report --scope acme --realm prod',
    {
      options: [
        option('--scope <scope>', 'rewrite every @local name to this scope'),
        option('--realm <realm>', 'put it on the list of this realm too'),
        option('--no-sign', 'publish unsigned, although there is a key'),
      ],
      run: async (hub, options, folder: string) => (await packages()).publish(hub, folder, options),
    },
  ),
  doing(
    'dispatch <team>',
    'run a published team on a daemon of a realm',
    '@acme/repo-report --realm prod -i folder=/srv/app --wait',
    {
      options: [
        inRealm,
        ...inputs,
        option('--name <name>', 'name of the run', runName),
        option('--workspace <name>', 'a workspace that the daemon must have'),
        option('--wait', 'follow the run to its end, and exit as it does; Ctrl-C twice cancels it'),
      ],
      run: async (hub, options, team: string) => (await packages()).dispatch(hub, team, options),
    },
  ),
  doing('status', 'show the state of this home: daemon, slots, runs, hub, disk, and what needs attention', '', {
    alone: async options => (await import('../machine/status.ts')).status(options),
  }),
  {
    usage: 'logout',
    does: 'sign out',
    examples: [['']],
    run: async options => (await session()).logout(options),
  },
]

/** Commands below a word. The first is meant when none is named. */
const GROUPS: readonly [word: string, does: string, table: () => Promise<{ ENTRIES: readonly Entry[] }>][] = [
  ['realms', 'the realms of a hub: where daemons enrol and runs are dispatched', () => import('./realms.ts')],
  ['orgs', 'the orgs of a hub: its tenants', () => import('./orgs.ts')],
  ['scopes', 'the scopes of a hub: where teams are published', () => import('./scopes.ts')],
  ['members', 'who belongs to a realm, an org or a scope, and as what', () => import('./members.ts')],
  ['invite', 'invitations to a realm', () => import('./invite.ts')],
  ['tokens', 'credentials of programs and people at a hub', () => import('./tokens.ts')],
  ['teams', 'the packages that are published at a hub', () => import('./teams.ts')],
  ['daemons', 'the machines of a realm', () => import('./daemons.ts')],
  ['queue', 'the jobs that no daemon has accepted yet', () => import('./queue.ts')],
]

/** Adds the commands about a hub. */
export async function addHubCommands(program: Command, act: Act): Promise<void> {
  const groups = GROUPS.map(async ([word, does, table]): Promise<Entry> => {
    // A table brings the calls of the hub with it, which take time to load.
    if (!process.argv.includes(word)) return { usage: word, does }
    const [first, ...others] = (await table()).ENTRIES
    const second = others[0]!.usage.split(' ', 1)[0]
    return {
      usage: word,
      does,
      examples: [[''], [`${second} --help`]],
      below: [{ ...first!, isDefault: true }, ...others],
    }
  })
  addCommands(
    program,
    [...SINGLE, AUDIT, ...(await Promise.all(groups))].map(each => ({ ...each, heading: HELP_GROUP })),
    act,
  )
}
