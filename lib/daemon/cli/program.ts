// The command line of the daemon: what all commands have in common, and `serve`. The others stand in tables by topic.

import { Command, CommanderError } from 'commander'
import { calledAs, isCadre } from '../../program/called-as.ts'
import { addHelp } from '../../text/command-words.ts'
import { commanderOutput } from '../../text/terminal.ts'
import { refuseSessionForm } from '../access/api-key.ts'
import { version } from '../home/version.ts'
import { tellFailure } from './failure.ts'
import { type Act, addCommands, type Entry, option } from './kit/command-table.ts'
import { MACHINE_COMMANDS } from './machine/machine-table.ts'
import type { ServeFlags } from './machine/serve.ts'
import { refuseForeignEnvironment } from './own-environment.ts'
import { RUN_COMMANDS } from './runs/runs-table.ts'
import { TEAM_COMMANDS } from './teams/teams-table.ts'

/** How long the work of a failed command may take to end. */
const LEAVE_MS = 500

const program = new Command(calledAs())
  .description('Runs teams: pipelines in one YAML file, on this machine.')
  .version(version)
  .option('--home <folder>', 'folder for all state (CADRE_HOME, default ~/.cadre)')
  .exitOverride()
  .configureOutput(commanderOutput)
  .showHelpAfterError('(use --help for more information)')

// Its commands are those of another program (deploy/cadre.ts).
if (isCadre()) program.command('hub').description('the commands of the hub: serve, user, backup, restore')

program.hook('preAction', () => refuseForeignEnvironment())

// This applies to every command: a key that ends with somebody's session would fail one day for no visible reason.
program.hook('preAction', () => refuseSessionForm(process.env.CADRE_API_KEY))

/**
 * Runs the command that the process was called with, and sets its exit code. `serve` is the default command. `addMore`
 * adds the commands that stand in a folder of their own.
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

  addCommands(program, [...RUN_COMMANDS, ...TEAM_COMMANDS, ...MACHINE_COMMANDS, ...ownCommands(serve)], act)
  addHelp(program)
  await addMore(program, act)
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
  return tellFailure(thrown, { home: program.opts<{ home?: string }>().home, path })
}

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
    does: 'serve the API',
    isDefault: true,
    examples: [[''], ['--port 7402 --home ~/.cadre-test', 'a second daemon with a home of its own']],
    options: [
      option('--host <address>', 'address to listen on (CADRE_DAEMON_HOST, default 127.0.0.1)'),
      option('--port <number>', 'port to listen on, 0 for any free port (CADRE_DAEMON_PORT, default 7401)'),
    ],
    run: options => serve(options),
  },
]
