// The commands about a hub, as tables: each with an example, and with the file of this folder that has it.

import type { Command } from 'commander'
import { calledAs } from '../../../called-as.ts'
import type { Act } from '../act.ts'
import { collect, runName } from '../options.ts'
import { addAuditCommands } from './audit-table.ts'
import { add, type Entry, HELP_GROUP, inRealm, option } from './entry.ts'
import { PEOPLE } from './people-table.ts'
import { PLACES } from './places-table.ts'
import { WORK } from './work-table.ts'

const inputs = [
  option('-i, --input <name=value>', 'an input; name=@file reads a file, name=@- stdin').argParser(collect),
  option('--inputs <file>', 'inputs as a JSON object'),
]

const session = () => import('./session.ts')
const packages = () => import('./publish.ts')

/** Commands of one word. */
const SINGLE: readonly Entry[] = [
  {
    usage: 'login <username>',
    does: 'sign in at a hub; the password is typed, or read from stdin',
    example: 'ada --hub https://hub.example.com',
    run: async (options, username) => (await session()).login(username, options),
  },
  {
    usage: 'realm-token [realm]',
    does: 'print a new token with which a daemon enrols in a realm, which need not be named if you have one',
    example: 'prod --name build-1',
    options: [option('--name <name>', 'name of the token')],
    run: async (options, realm) => (await session()).realmToken(realm, options),
  },
  {
    usage: 'publish <folder>',
    does: 'publish a team as a package, signed where there is a key (`keys new`)',
    example: 'examples/repo-report --scope acme --realm prod',
    options: [
      option('--scope <scope>', 'rewrite every @local name to this scope'),
      option('--realm <realm>', 'put it on the list of this realm too'),
      option('--no-sign', 'publish unsigned, although there is a key'),
    ],
    run: async (options, folder) => (await packages()).publish(folder, options),
  },
  {
    usage: 'dispatch <team>',
    does: 'run a published team on a daemon of a realm',
    example: '@acme/repo-report --realm prod -i folder=/srv/app --wait',
    options: [
      inRealm,
      ...inputs,
      option('--name <name>', 'name of the run').argParser(runName),
      option('--workspace <name>', 'a workspace that the daemon must have'),
      option('--wait', 'follow the run to its end, and exit as it does; Ctrl-C twice cancels it'),
    ],
    run: async (options, team) => (await packages()).dispatch(team, options),
  },
  {
    usage: 'status',
    does: 'show how this home is: daemon, slots, runs, hub, disk, and what needs attention',
    example: '',
    run: async options => (await import('../status.ts')).status(options),
  },
]

/** Adds the commands about a hub. Each loads its module when it is called. */
export function addHubCommands(program: Command, act: Act): void {
  for (const entry of SINGLE) add(program, entry, act)
  addAuditCommands(program, act)
  program
    .command('logout')
    .helpGroup(HELP_GROUP)
    .description('sign out')
    .addHelpText('after', `\nExample:\n  $ ${calledAs()} logout`)
    .action((_, command: Command) => act(async () => (await session()).logout(command.optsWithGlobals())))
  for (const { word, does, entries } of [...PLACES, ...PEOPLE, ...WORK]) {
    const group = program.command(word).helpGroup(HELP_GROUP).description(does)
    for (const entry of entries) add(group, entry, act)
    const calls = [word, `${word} ${entries[1]!.usage.split(' ', 1)[0]} --help`]
    group.addHelpText('after', `\nExamples:\n${calls.map(each => `  $ ${calledAs()} ${each}`).join('\n')}`)
  }
}
