// The commands about a hub, as tables: each with its words and an example.

import type { Command } from 'commander'
import { calledAs } from '../../../program/called-as.ts'
import { examplesText } from '../../../text/command-words.ts'
import type { Act } from '../kit/act.ts'
import { collect, runName } from '../kit/options.ts'
import { addAuditCommands } from './audit-table.ts'
import { add, doing, type Entry, HELP_GROUP, inRealm, option } from './entry.ts'

const inputs = [
  option('-i, --input <name=value>', 'an input; name=@file reads a file, name=@- stdin').argParser(collect),
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
        option('--name <name>', 'name of the run').argParser(runName),
        option('--workspace <name>', 'a workspace that the daemon must have'),
        option('--wait', 'follow the run to its end, and exit as it does; Ctrl-C twice cancels it'),
      ],
      run: async (hub, options, team: string) => (await packages()).dispatch(hub, team, options),
    },
  ),
  doing('status', 'show the state of this home: daemon, slots, runs, hub, disk, and what needs attention', '', {
    alone: async options => (await import('../machine/status.ts')).status(options),
  }),
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
  for (const entry of SINGLE) add(program, entry, act)
  addAuditCommands(program, act)
  program
    .command('logout')
    .helpGroup(HELP_GROUP)
    .description('sign out')
    .addHelpText('after', examplesText(calledAs(), ['logout']))
    .action((_, command: Command) => act(async () => (await session()).logout(command.optsWithGlobals())))
  for (const [word, does, table] of GROUPS) {
    const group = program.command(word).helpGroup(HELP_GROUP).description(does)
    // A table brings the calls of the hub with it, which take time to load.
    if (!process.argv.includes(word)) continue
    const { ENTRIES } = await table()
    for (const [at, entry] of ENTRIES.entries()) add(group, entry, act, at === 0)
    const second = ENTRIES[1]!.usage.split(' ', 1)[0]
    group.addHelpText('after', examplesText(calledAs(), [word, `${word} ${second} --help`]))
  }
}
