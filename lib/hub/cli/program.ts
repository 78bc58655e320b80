// The command line of the hub: `bun hub.ts` serves, `drain` stops it, `user …` manages accounts, `backup` and `restore`
// copy the database, `key rotate` changes the key of what is sealed.

import { Command } from 'commander'
import { backup, restore } from '../../../db/hub/backup.ts'
import { CadreError } from '../../error.ts'
import { hubCalledAs } from '../../program/called-as.ts'
import { addVersion } from '../../program/version-option.ts'
import { addHelp, examplesText, refuseWords } from '../../text/command-words.ts'
import { line, lines } from '../../text/printable.ts'
import { commanderOutput, print, printMessage } from '../../text/terminal.ts'
import { type HubFlags, hubConfig } from '../config.ts'
import { rotateHubKey } from '../keys/rotate-keys.ts'
import { addAccount, listAccounts, onHub, setPassword, suspendAccount } from './accounts.ts'
import { drain } from './drain.ts'
import { type ReconcileFlags, reconcile } from './reconcile.ts'

const database = [
  '--database <location>',
  'a SQLite file, or postgres://… (CADRE_HUB_DATABASE, default <home>/hub.db; the home is CADRE_HOME, default ~/.cadre)',
] as const
const passwordStdin = [
  '--password-stdin',
  'read the password from stdin instead of making one up and printing it',
] as const

const examples = (...calls: readonly string[]) => examplesText(hubCalledAs(), calls)

/** Runs the command that the process was called with, and sets its exit code. */
export async function runCommand(serve: (flags: HubFlags) => Promise<void>): Promise<void> {
  try {
    await program(serve).parseAsync()
  } catch (error) {
    if (error instanceof CadreError) printMessage(line`hub: ${error.message}`)
    else if ((error as { code?: string }).code?.startsWith('commander.')) {
      process.exit((error as { exitCode?: number }).exitCode === 0 ? 0 : 2)
    } else throw error
    process.exit(error instanceof CadreError && error.code === 'unavailable' ? 1 : 2)
  }
}

function program(serve: (flags: HubFlags) => Promise<void>): Command {
  const program = addVersion(new Command(hubCalledAs()))
    .description('The hub: signs people in, stores published teams, gives runs to daemons, and shows the runs of all.')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .exitOverride()
    .configureOutput(commanderOutput)

  program
    .command('serve', { isDefault: true })
    .description('start the hub: API and pages')
    .option('--host <address>', 'the address to listen on (CADRE_HUB_HOST, default 127.0.0.1)')
    .option('--port <number>', 'the port to listen on; 0: any free one (CADRE_HUB_PORT, default 7400)')
    .option(...database)
    .allowExcessArguments()
    .addHelpText('after', examples('serve --port 7500', 'serve --database postgres://hub@db.example.com/hub'))
    .action((flags: HubFlags, command: Command) => {
      refuseWords(program, command)
      return serve(flags)
    })

  program
    .command('drain')
    .description('stop the hub on this machine, as SIGTERM does, and wait for its end')
    .option('--port <number>', 'the port of the hub, where several serve here')
    .option(...database)
    .addHelpText('after', examples('drain', 'drain --port 7500'))
    .action((flags: HubFlags) => {
      const config = hubConfig(flags)
      return drain(config, flags.port === undefined ? undefined : config.port)
    })

  const user = program
    .command('user')
    .description('add, list and suspend accounts, and set passwords')
    .addHelpText('after', examples('user add ada', 'user list'))

  user
    .command('add <name>')
    .description('add an account, and print its password')
    .option('--admin', 'make it a site admin, who may do everything')
    .option(...passwordStdin)
    .option(...database)
    .addHelpText('after', examples('user add ada', 'user add grace --admin --password-stdin < password'))
    .action((name: string, flags: HubFlags & { admin?: boolean; passwordStdin?: boolean }) =>
      onHub(hubConfig(flags), hub => addAccount(hub, name, flags), { creates: true }),
    )

  user
    .command('list')
    .description('list accounts')
    .option(...database)
    .addHelpText('after', examples('user list'))
    .action((flags: HubFlags) => onHub(hubConfig(flags), listAccounts))

  user
    .command('suspend <name>')
    .description('suspend an account: the hub refuses it and all its tokens')
    .option(...database)
    .addHelpText('after', examples('user suspend ada'))
    .action((name: string, flags: HubFlags) => onHub(hubConfig(flags), hub => suspendAccount(hub, name)))

  user
    .command('passwd <name>')
    .description('give an account a new password, and end its sessions')
    .option(...passwordStdin)
    .option(...database)
    .addHelpText('after', examples('user passwd ada'))
    .action((name: string, flags: HubFlags & { passwordStdin?: boolean }) =>
      onHub(hubConfig(flags), hub => setPassword(hub, name, flags)),
    )

  program
    .command('backup <file>')
    .description('copy the SQLite database to a new file, even while a hub serves it')
    .option(...database)
    .addHelpText('after', examples('backup hub-backup.db'))
    .action((file: string, flags: HubFlags) => {
      const from = hubConfig(flags).database
      print(line`backed up ${from} to ${file}, ${backup(from, file)} bytes`)
    })

  program
    .command('restore <file>')
    .description('replace the SQLite database by a backup; the hub must be stopped')
    .option('--replace', 'overwrite an existing database')
    .option(
      '--revoke-tokens',
      'end all tokens of people, because tokens that were revoked after the backup would work again',
    )
    .option(...database)
    .addHelpText('after', examples('restore hub-backup.db --replace'))
    .action(async (file: string, flags: HubFlags & { replace?: boolean; revokeTokens?: boolean }) => {
      const to = hubConfig(flags).database
      print(line`restored ${file} to ${to}, ${await restore(to, file, flags)} bytes`)
    })

  program
    .command('reconcile')
    .description('show what an older copy of the database lacks; go on without a daemon that cannot report')
    .option('--realm <realm>', 'id or slug; not needed if there is only one')
    .option(
      '--without <daemon>',
      'stop waiting for this daemon (name or id); what it may have executed is executed again',
    )
    .option('--json', 'print JSON')
    .option(...database)
    .addHelpText('after', examples('reconcile', 'reconcile --realm prod --without build-1'))
    .action((flags: HubFlags & ReconcileFlags) => onHub(hubConfig(flags), hub => reconcile(hub, flags)))

  const key = program
    .command('key')
    .description('change the key that the hub seals secrets with (CADRE_HUB_KEY)')
    .addHelpText('after', examples('key rotate'))

  key
    .command('rotate')
    .description('seal everything again with the first key of CADRE_HUB_KEY=new,old; hubs may serve meanwhile')
    .option('--give-up-lost', 'go on although values need a key that is lost; make those anew afterwards')
    .option(...database)
    .addHelpText('after', examples('key rotate'))
    .action((flags: HubFlags & { giveUpLost?: boolean }) =>
      onHub(hubConfig(flags), async hub => lines((await rotateHubKey(hub, flags)).join('\n'))),
    )

  addHelp(program)
  return program
}
