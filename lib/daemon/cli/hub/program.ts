// The commands about a hub, as tables: each with its words and an example.

import type { Command } from 'commander'
import { type Act, addCommands, type Entry, HEADINGS, inEnvironment, option, under } from '../kit/command-table.ts'
import { collect, runName } from '../kit/options.ts'
import { AUDIT } from './audit-table.ts'
import { doing, inRealm } from './entry.ts'

const inputs = [
  option('-i, --input <name=value>', 'an input; name=@file reads a file, name=@- stdin', collect),
  option('--inputs <file>', 'a file with the inputs as a JSON object'),
]

const session = () => import('./session.ts')
const packages = () => import('./publish.ts')

/** Commands of one word. */
const SINGLE: readonly Entry[] = [
  doing('login <username>', 'sign in to a hub', 'ada --hub https://hub.example.com', {
    more: 'Type the password, or give it on stdin.',
    alone: async (options, username: string) => (await session()).login(username, options),
  }),
  doing('realm-token [realm]', 'print a token with which a daemon enrols', 'prod --name build-1', {
    more: 'The daemon enrols in the realm, which you can leave out if you have only one. On the machine of the daemon, `enrol` reads the token.',
    options: [option('--name <name>', 'a name for the token, which lists show')],
    run: async (hub, options, realm) => (await session()).realmToken(hub, realm, options),
  }),
  doing('publish <folder>', 'publish a team as a package', 'examples/repo-report --scope acme --realm prod', {
    more: 'If you have a key (`keys new`), the command signs the package with it.',
    options: [
      option('--scope <scope>', 'publish @local names under this scope'),
      option('--realm <realm>', 'let the daemons of this realm run it, too'),
      option('--no-sign', 'do not sign, although there is a key'),
    ],
    run: async (hub, options, folder: string) => (await packages()).publish(hub, folder, options),
  }),
  doing(
    'dispatch <team>',
    'run a published team on a daemon of a realm',
    '@acme/repo-report --realm prod -i folder=/srv/app --wait',
    {
      options: [
        inRealm,
        ...inputs,
        option('--name <name>', 'a name for the run, which lists show', runName),
        option('--workspace <name>', 'a workspace that the daemon must have'),
        inEnvironment,
        option('--wait', 'follow the run to its end, and exit as `run` does; Ctrl-C twice cancels it'),
      ],
      run: async (hub, options, team: string) => (await packages()).dispatch(hub, team, options),
    },
  ),
  {
    usage: 'logout',
    does: 'sign out of the hub',
    examples: [['']],
    run: async options => (await session()).logout(options),
  },
]

/** Commands below a word. The first is meant when none is named. */
const GROUPS: readonly [word: string, does: string, table: () => Promise<{ ENTRIES: readonly Entry[] }>][] = [
  ['realms', 'manage realms: groups of daemons', () => import('./realms.ts')],
  ['orgs', 'manage orgs: the tenants of a hub', () => import('./orgs.ts')],
  ['scopes', 'manage scopes: where teams are published', () => import('./scopes.ts')],
  ['members', 'manage who belongs to a realm, an org or a scope', () => import('./members.ts')],
  ['invite', 'invite people to a realm', () => import('./invite.ts')],
  ['tokens', 'manage credentials of programs and people', () => import('./tokens.ts')],
  ['teams', 'list, show and hide published teams', () => import('./teams.ts')],
  ['daemons', 'list, approve, pause and remove daemons', () => import('./daemons.ts')],
  ['webhooks', 'list, add and remove webhooks of a realm, and send messages again', () => import('./webhooks.ts')],
  ['queue', 'list and cancel runs that wait for a daemon', () => import('./queue.ts')],
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
  addCommands(program, under(HEADINGS.hub, [...SINGLE, AUDIT, ...(await Promise.all(groups))]), act)
}
