// The command line of the daemon. Each command loads its modules when it is called, so that `run` starts fast.

import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { calledAs, isCadre } from '../../called-as.ts'
import { didYouMean } from '../../spelling.ts'
import { TOLD_RUN_STATES } from '../../wire/states.ts'
import { refuseSessionForm } from '../api-key.ts'
import { refuseForeignEnvironment } from '../own-environment.ts'
import type { ServeFlags } from '../serve.ts'
import { version } from '../version.ts'
import { tellFailure } from './failure.ts'
import { sinceOf as since } from './since.ts'

/** How long the work of a failed command may take to end. */
const LEAVE_MS = 500

const program = new Command(calledAs())
  .description('Runs teams: pipelines in one YAML file, on this machine.')
  .version(version)
  .option('--home <folder>', 'folder for all state (CADRE_HOME, default ~/.cadre)')
  .exitOverride()
  .showHelpAfterError('(use --help for more information)')

// Its commands are those of another program (deploy/cadre.ts).
if (isCadre()) program.command('hub').description('the commands of the hub: serve, user, backup, restore')

program.hook('preAction', () => refuseForeignEnvironment())

// This applies to every command: a key that ends with somebody's session would fail one day for no visible reason.
program.hook('preAction', () => refuseSessionForm(process.env.CADRE_API_KEY))

/** Runs the command that the process was called with, and sets its exit code. `serve` is the default command. */
export async function runCommand(serve: (flags: ServeFlags) => Promise<void>): Promise<void> {
  // Errors that no code has handled.
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    process.on(event, (thrown: unknown) => process.exit(fail(thrown)))
  }

  // The reader of a pipe such as `… | head` has read enough, which is not a failure.
  process.stdout.on('error', error => {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
    process.exit()
  })

  serveWith(serve)
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

function serveWith(serve: (flags: ServeFlags) => Promise<void>): void {
  program
    .command('serve', { isDefault: true })
    .description('serve the API (default)')
    .option('--host <address>', 'address to listen on (CADRE_DAEMON_HOST, default 127.0.0.1)')
    .option('--port <number>', 'port to listen on, 0 for any free port (CADRE_DAEMON_PORT, default 7401)')
    .allowExcessArguments()
    .action((_, command: Command) => {
      // As the default command, `serve` also receives words that are not commands.
      const [word] = command.args
      if (word !== undefined) {
        const names = program.commands.map(each => each.name())
        program.error(`error: unknown command '${word}'${didYouMean(word, names)}`)
      }
      return act(() => serve(command.optsWithGlobals()))
    })
}

const collect = (value: string, all: string[] = []) => [...all, value]

/** The number of items that a list shows. */
function count(text: string): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= 1 && value <= 100) return value
  throw new InvalidArgumentError('Expected a number from 1 to 100.')
}

function offset(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Expected a number.')
}

const explain = () => import('./explain.ts')

program
  .command('run <team>')
  .description('run a team: a folder, a team.yml, or @scope/name')
  .option('-i, --input <name=value>', 'an input; name=@file reads a file, name=@- stdin', collect)
  .option('--inputs <file>', 'inputs as a JSON object')
  .option('--name <name>', 'name of the run')
  .option('--workspace <folder>', 'where to work: a folder, or the name of a workspace (default: here)')
  .option('-d, --detach', 'start it in the daemon and do not follow it')
  .option('--json', 'print the run record')
  .action((team: string, _, command: Command) =>
    act(async () => (await import('./run.ts')).run(team, command.optsWithGlobals()), team),
  )

program
  .command('watch <run>')
  .description('follow a run that another process executes; Ctrl-C twice cancels it')
  .option('--json', 'print the run record')
  .action((run: string, _, command: Command) =>
    act(async () => (await import('./watch.ts')).watchRun(run, command.optsWithGlobals())),
  )

program
  .command('dashboard')
  .description('open the page of the daemon in a browser, or print its address where none can be opened')
  .option('--no-open', 'print the address, which contains the local token')
  .action((_, command: Command) =>
    act(async () => (await import('./dashboard.ts')).dashboard(command.optsWithGlobals())),
  )

program
  .command('validate <team>')
  .description('check a team and everything that it uses')
  .option('--json')
  .action((team: string, _, command: Command) =>
    act(async () => (await import('./teams.ts')).validate(team, command.optsWithGlobals()), team),
  )

program
  .command('plan <team>')
  .description('print what a run would do, without doing it')
  .option('-i, --input <name=value>', 'an input; name=@file reads a file, name=@- stdin', collect)
  .option('--inputs <file>', 'inputs as a JSON object')
  .option('--json')
  .action((team: string, _, command: Command) =>
    act(async () => (await import('./plan.ts')).plan(team, command.optsWithGlobals()), team),
  )

program
  .command('schema')
  .description('print the JSON Schema of team.yml')
  .action((_, command: Command) => act(async () => (await import('./teams.ts')).schema(command.optsWithGlobals())))

program
  .command('agents [agent]')
  .description('list the agents, or print the manual of one')
  .option('--json')
  .action((agent: string | undefined, _, command: Command) =>
    act(async () => (await import('./teams.ts')).agents(agent, command.optsWithGlobals())),
  )

program
  .command('agent')
  .description('manage your own agents')
  .command('new <name>')
  .description('write an agent and its test into the home')
  .option('--from <agent>', 'a built-in agent to copy, such as http')
  .option('--built-in', 'write them into the repository of cadre instead')
  .action((name: string, _, command: Command) =>
    act(async () => (await import('./agent.ts')).agentNew(name, command.optsWithGlobals())),
  )

program
  .command('doctor [agent]')
  .description('check settings, and ask each system whose the credential is and which permissions it lacks')
  .option('--json')
  .action((agent: string | undefined, _, command: Command) =>
    act(async () => (await import('./doctor.ts')).doctor(agent, command.optsWithGlobals())),
  )

const runList = program
  .command('runs')
  .description('list runs, newest first')
  .option('--all', 'include sub-runs')
  .addOption(new Option('--state <state>', 'only runs in this state').choices(TOLD_RUN_STATES))
  .option('--team <name>', 'only runs of this team, such as @local/report')
  .option('--since <when>', 'only runs that began since then: 2h, 3d, 2026-05-02', since)
  .option('--limit <number>', 'how many (20)', count)
  .option('--offset <number>', 'how many to pass over (0)', offset)
  .option('--json')
  .action((_, command: Command) => act(async () => (await import('./runs.ts')).runs(command.optsWithGlobals())))

runList
  .command('delete <run>')
  .description('delete an ended run, all runs below it, and their files')
  .action((run: string, _, command: Command) =>
    act(async () => (await import('./runs.ts')).deleteRun(run, command.optsWithGlobals())),
  )

program
  .command('show <run>')
  .description('show what is recorded of a run: inputs, outputs, files, and what it wrote outside')
  .option('--json')
  .action((run: string, _, command: Command) =>
    act(async () => (await explain()).showRun(run, command.optsWithGlobals())),
  )

program
  .command('tree <run>')
  .description('show the whole tree of a run, with its phases')
  .option('--hub [url]', 'show the tree as the hub has it')
  .option('--json')
  .action((run: string, _, command: Command) =>
    act(async () => (await import('./tree.ts')).tree(run, command.optsWithGlobals())),
  )

program
  .command('phases <run>')
  .description('show the phases of a run')
  .option('--json')
  .action((run: string, _, command: Command) =>
    act(async () => (await explain()).phases(run, command.optsWithGlobals())),
  )

program
  .command('logs <run>')
  .description('print the log of a run and of all runs below it')
  .option('-f, --follow', 'print new lines until the run ends')
  .option('--phase <name>', 'only what this phase said, and runs below it')
  .option('--failed', 'only what failed phases said')
  .option('--since <when>', 'only lines since then: 10m, 2h, 2026-05-02T14:00', since)
  .option('--hub [url]', 'print what the hub has, and say which lines are missing or still to come')
  .option('--json')
  .action((run: string, _, command: Command) =>
    act(async () => (await import('./logs.ts')).logs(run, command.optsWithGlobals())),
  )

program
  .command('why <run>')
  .description('say why a run ended as it did, and how to go on')
  .option('--json')
  .action((run: string, _, command: Command) => act(async () => (await explain()).why(run, command.optsWithGlobals())))

program
  .command('files <run> [get] [path]')
  .description('list the files that a run wrote; `files RUN get PATH` prints one')
  .option('-o, --output <file>', 'write it to this file')
  .option('--json')
  .action((run: string, verb: string | undefined, path: string | undefined, _, command: Command) =>
    act(async () => (await import('./files.ts')).files(run, verb, path, command.optsWithGlobals())),
  )

program
  .command('resume <run>')
  .description('continue a run that was interrupted, or that has ended; what completed stays')
  .option('--from <phase>', 'repeat this phase and what depends on it')
  .option('--failed', 'also repeat the failed items of maps that completed nevertheless')
  .option('-i, --input <name=value>', 'give a secret input again; name=@- reads stdin, name=@file a file', collect)
  .option('--json', 'print the run record')
  .action((run: string, _, command: Command) =>
    act(async () => (await import('./change.ts')).resume(run, command.optsWithGlobals())),
  )

program
  .command('cancel <run>')
  .description('cancel a run and all runs below it; a second cancel also stops its cleanup phases')
  .action((run: string, _, command: Command) =>
    act(async () => (await import('./change.ts')).cancel(run, command.optsWithGlobals())),
  )

program
  .command('reviews')
  .description('list the reviews that wait for people')
  .option('--all', 'include decided reviews')
  .option('--limit <number>', 'how many (20)', count)
  .option('--json')
  .action((_, command: Command) => act(async () => (await import('./reviews.ts')).reviews(command.optsWithGlobals())))

program
  .command('decide <review> [decision]')
  .description('answer a review: approve, reject; retry, skip, complete, fail; asks at a terminal for what is missing')
  .option('--comment <text>')
  .option('--values <json>', 'what the form asks')
  .action((review: string, decision: string | undefined, _, command: Command) =>
    act(async () => (await import('./reviews.ts')).decide(review, decision, command.optsWithGlobals())),
  )

const settings = program.command('settings').description('settings of agents and of the daemon')
const settingCommands = () => import('./settings.ts')

settings
  .command('list')
  .option('--json')
  .action((_, command: Command) => act(async () => (await settingCommands()).listSettings(command.optsWithGlobals())))

settings
  .command('get <key>')
  .action((key: string, _, command: Command) =>
    act(async () => (await settingCommands()).getSetting(key, command.optsWithGlobals())),
  )

settings
  .command('set <key> [value]')
  .description('set a setting; the value - reads it from stdin, and no value removes the setting')
  .action((key: string, value: string | undefined, _, command: Command) =>
    act(async () => (await settingCommands()).setSetting(key, value, command.optsWithGlobals())),
  )

program
  .command('workspaces')
  .description('list the folders that runs work in')
  .option('--json')
  .action((_, command: Command) =>
    act(async () => (await import('./workspaces.ts')).workspaces(command.optsWithGlobals())),
  )

const service = program.command('service').description('the daemon or the hub as a service of systemd or launchd')
const serviceCommands = () => import('./service.ts')
const system = ['--system', 'a service of the system instead of yours'] as const

service
  .command('install [program]')
  .description('write a service and start it: daemon (default) or hub')
  .option(...system)
  .option('--no-start', 'only write it')
  .action((served: string | undefined, _, command: Command) =>
    act(async () => (await serviceCommands()).installService(served, command.optsWithGlobals())),
  )

service
  .command('print [program]')
  .description('print what install would write')
  .option(...system)
  .action((served: string | undefined, _, command: Command) =>
    act(async () => (await serviceCommands()).printService(served, command.optsWithGlobals())),
  )

service
  .command('status [program]')
  .description('say whether it runs')
  .option(...system)
  .action((served: string | undefined, _, command: Command) =>
    act(async () => (await serviceCommands()).serviceStatus(served, command.optsWithGlobals())),
  )

service
  .command('remove [program]')
  .description('stop it and remove it; its state stays')
  .option(...system)
  .action((served: string | undefined, _, command: Command) =>
    act(async () => (await serviceCommands()).removeService(served, command.optsWithGlobals())),
  )

program
  .command('upgrade')
  .description('say how to upgrade this cadre, without doing it')
  .action(() => act(async () => (await import('./upgrade.ts')).upgrade()))

const hub = () => import('./hub.ts')

program
  .command('login <username>')
  .description('sign in at a hub; the password is read from stdin')
  .option('--hub <url>', 'the hub (CADRE_HUB_URL)')
  .action((username: string, _, command: Command) =>
    act(async () => (await hub()).login(username, command.optsWithGlobals())),
  )

program
  .command('logout')
  .description('sign out')
  .action((_, command: Command) => act(async () => (await hub()).logout(command.optsWithGlobals())))

program
  .command('enrol')
  .description('store the hub and a realm token, which is read from stdin, for this daemon')
  .option('--hub <url>', 'the hub (CADRE_HUB_URL)')
  .action((_, command: Command) => act(async () => (await import('./enrol.ts')).enrol(command.optsWithGlobals())))

program
  .command('realm-token <realm>')
  .description('print a new token with which a daemon enrols in a realm')
  .option('--hub <url>', 'the hub (CADRE_HUB_URL)')
  .option('--name <name>', 'name of the token')
  .option('--json')
  .action((realm: string, _, command: Command) =>
    act(async () => (await hub()).realmToken(realm, command.optsWithGlobals())),
  )

const keys = program.command('keys').description('the keys with which publish signs')
const keyCommands = () => import('./keys.ts')

keys
  .command('new')
  .description('make a key, which publish uses from now on, and print its public half')
  .option('--json')
  .action((_, command: Command) => act(async () => (await keyCommands()).newKey(command.optsWithGlobals())))

keys
  .command('list', { isDefault: true })
  .description('list the public halves, the one in use first (default)')
  .option('--json')
  .action((_, command: Command) => act(async () => (await keyCommands()).listKeys(command.optsWithGlobals())))

keys
  .command('use <key>')
  .description('sign with the key that begins with this text')
  .action((key: string, _, command: Command) =>
    act(async () => (await keyCommands()).useKey(key, command.optsWithGlobals())),
  )

program
  .command('publish <folder>')
  .description('publish a team as a package, signed where there is a key (`keys new`)')
  .option('--hub <url>', 'the hub (CADRE_HUB_URL)')
  .option('--scope <scope>', 'rewrite every @local name to this scope')
  .option('--realm <realm>', 'put it on the list of this realm too')
  .option('--no-sign', 'publish unsigned, although there is a key')
  .option('--json')
  .action((folder: string, _, command: Command) =>
    act(async () => (await hub()).publish(folder, command.optsWithGlobals()), folder),
  )

program
  .command('dispatch <team>')
  .description('run a published team on a daemon of a realm')
  .requiredOption('--realm <realm>', 'id, slug or name')
  .option('--hub <url>', 'the hub (CADRE_HUB_URL)')
  .option('-i, --input <name=value>', 'an input; name=@file reads a file, name=@- stdin', collect)
  .option('--inputs <file>', 'inputs as a JSON object')
  .option('--name <name>', 'name of the run')
  .option('--workspace <name>', 'a workspace that the daemon must have')
  .option('--json')
  .action((team: string, _, command: Command) =>
    act(async () => (await hub()).dispatch(team, command.optsWithGlobals())),
  )
