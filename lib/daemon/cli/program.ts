// The command line of the daemon: what all commands have in common, and `serve`. The others stand in tables by topic.

import { Command, CommanderError, Help } from 'commander'
import { calledAs, isCadre } from '../../program/called-as.ts'
import { addVersion } from '../../program/version-option.ts'
import { addHelp, examplesText } from '../../text/command-words.ts'
import { commanderOutput } from '../../text/terminal.ts'
import { refuseSessionForm } from '../access/api-key.ts'
import { printFailure } from './failure.ts'
import { type Act, addCommands, calledEntry, type Entry, HEADINGS, option, under } from './kit/command-table.ts'
import { MACHINE_COMMANDS } from './machine/machine-table.ts'
import type { ServeFlags } from './machine/serve.ts'
import { refuseForeignEnvironment } from './own-environment.ts'
import { RUN_COMMANDS } from './runs/runs-table.ts'
import { TEAM_COMMANDS } from './teams/teams-table.ts'
import { TRIGGER_COMMANDS } from './triggers/triggers-table.ts'

/** How long the work of a failed command may take to end. */
const LEAVE_MS = 500

const program = addVersion(new Command(calledAs()))
  .description('Runs teams: pipelines in one YAML file, on this machine.')
  .option('--home <folder>', 'the folder with runs, settings and keys (CADRE_HOME, default ~/.cadre)')
  .helpOption('-h, --help', 'print this help')
  .helpCommand('help [command]', 'print the help of a command')
  .exitOverride()
  .configureOutput(commanderOutput)
  // Every command takes options, so `[options]` in a list would only take space.
  .configureHelp({ subcommandTerm: command => new Help().subcommandTerm(command).replace(' [options]', '') })
  .showHelpAfterError('(use --help for more information)')

program.hook('preAction', () => refuseForeignEnvironment())

// This applies to every command: a key that ends with somebody's session would fail one day for no visible reason.
program.hook('preAction', () => refuseSessionForm(process.env.CADRE_API_KEY))

/**
 * Runs the command that the process was called with, and sets its exit code. `serve` is the default command. `addMore`
 * adds the commands that stand in a folder of their own. A command that is called by its name is made alone, because all
 * of them take longer than most commands (measured: 19 ms of 254 ms of processor time of a short run).
 */
export async function runCommand(
  serve: (flags: ServeFlags) => Promise<void>,
  addMore: (program: Command, act: Act) => Promise<void>,
): Promise<void> {
  // Errors that no code has handled.
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    process.on(event, (thrown: unknown) => process.exit(fail(thrown)))
  }

  // The reader of a pipe such as `… | head` has read enough, which is not a failure.
  process.stdout.on('error', error => {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
    process.exit()
  })

  const called = calledEntry(
    [...RUN_COMMANDS, ...TRIGGER_COMMANDS, ...TEAM_COMMANDS, ...MACHINE_COMMANDS],
    process.argv.slice(2),
  )
  if (called) addCommands(program, [called], act)
  else {
    addCommands(program, under(HEADINGS.runs, RUN_COMMANDS), act)
    addCommands(program, under(HEADINGS.triggers, TRIGGER_COMMANDS), act)
    addCommands(program, under(HEADINGS.teams, TEAM_COMMANDS), act)
    addCommands(program, under(HEADINGS.machine, [...ownCommands(serve), ...MACHINE_COMMANDS]), act)
    addHelp(program).helpGroup(HEADINGS.machine)
    // Its commands are those of another program (deploy/cadre.ts).
    if (isCadre())
      program.command('hub').helpGroup(HEADINGS.hub).description('start a hub; manage its accounts and database')
    await addMore(program, act)
  }
  program.addHelpText('after', () => examplesText(calledAs(), FIRST_CALLS))
  try {
    await program.parseAsync()
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
    else process.exitCode = fail(error)
  }
}

/** Runs `work`. If it returns a number, that is the exit code. `path` is the team that the command was given. */
function act(work: () => Promise<unknown>, path?: string): Promise<void> {
  return work().then(
    code => {
      if (typeof code === 'number') process.exitCode = code
    },
    thrown => {
      process.exitCode = fail(thrown, path)
      // The work may still wait for a disk or a peer that never answers.
      setTimeout(() => process.exit(), LEAVE_MS).unref()
    },
  )
}

function fail(thrown: unknown, path?: string): number {
  return printFailure(thrown, { home: program.opts<{ home?: string }>().home, path })
}

const FIRST_CALLS = [
  'init hello --from exec',
  'run hello',
  'why last     # why the newest run failed, and how to go on',
  'run --help     # what a command does, with examples',
]

/** The commands that need the whole command line, or the server of this program. */
const ownCommands = (serve: (flags: ServeFlags) => Promise<void>): readonly Entry[] => [
  {
    usage: 'complete [words...]',
    does: 'print what the last word may become',
    hidden: true,
    run: async (_, ...[words]) => (await import('./machine/complete.ts')).printWords(program, [words ?? []].flat()),
  },
  {
    usage: 'serve',
    does: 'start the daemon: dashboard and API',
    more: 'The daemon first continues interrupted runs. It works until SIGTERM, Ctrl-C or `drain`.',
    isDefault: true,
    examples: [[''], ['--port 7402 --home ~/.cadre-test', 'a second daemon with a home of its own']],
    options: [
      option('--host <address>', 'the address to listen on (CADRE_DAEMON_HOST, default 127.0.0.1)'),
      option('--port <number>', 'the port to listen on; 0: any free one (CADRE_DAEMON_PORT, default 7401)'),
    ],
    run: options => serve(options),
  },
]
