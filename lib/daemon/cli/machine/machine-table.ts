// The commands about this machine: its page, settings, folders, services and keys. Each loads its modules when it is
// called.

import type { Command } from 'commander'
import type { Act } from '../kit/act.ts'

/** From `dashboard` to `completion`. */
export function addMachineCommands(program: Command, act: Act): void {
  program
    .command('dashboard')
    .description('open the page of the daemon in a browser, or print its address if no browser can be opened')
    .option('--no-open', 'print the address, which contains the local token')
    .action((_, command: Command) =>
      act(async () => (await import('./dashboard.ts')).dashboard(command.optsWithGlobals())),
    )

  const settings = program.command('settings').description('settings of agents and of the daemon')
  const settingCommands = () => import('./settings.ts')

  settings
    .command('list')
    .description('list the settings; secrets are masked')
    .option('--json', 'print JSON')
    .action((_, command: Command) => act(async () => (await settingCommands()).listSettings(command.optsWithGlobals())))

  settings
    .command('get <key>')
    .description('print a setting; a secret is masked')
    .action((key: string, _, command: Command) =>
      act(async () => (await settingCommands()).getSetting(key, command.optsWithGlobals())),
    )

  settings
    .command('set <key> [value]')
    .description('set a setting; the value - reads it from stdin, and no value removes the setting')
    .action((key: string, value: string | undefined, _, command: Command) =>
      act(async () => (await settingCommands()).setSetting(key, value, command.optsWithGlobals())),
    )

  const workspaces = program.command('workspaces').description('the folders that runs work in')
  const workspaceCommands = () => import('./workspaces.ts')

  workspaces
    .command('list', { isDefault: true })
    .description('list them (default)')
    .option('--json', 'print JSON')
    .action((_, command: Command) =>
      act(async () => (await workspaceCommands()).listWorkspaces(command.optsWithGlobals())),
    )

  workspaces
    .command('add <folder>')
    .description('register a folder, or change its name or offer')
    .option('--name <name>', 'its name (default: the name of the folder)')
    .option('--offer', 'let runs that the hub dispatches work in it')
    .option('--no-offer', 'stop letting dispatched runs work in it')
    .option('--json', 'print JSON')
    .action((folder: string, _, command: Command) =>
      act(async () => (await workspaceCommands()).addWorkspace(folder, command.optsWithGlobals())),
    )

  workspaces
    .command('remove <workspace>')
    .description('forget a folder, named by its name, id or path; the folder stays')
    .option('--json', 'print JSON')
    .action((workspace: string, _, command: Command) =>
      act(async () => (await workspaceCommands()).removeWorkspace(workspace, command.optsWithGlobals())),
    )

  program
    .command('home')
    .description('the home of the daemon, where its state is')
    .command('moved')
    .description('say that the home was moved here: its hub then refuses the daemon at the former place')
    .action((_, command: Command) => act(async () => (await import('./home.ts')).moved(command.optsWithGlobals())))

  program
    .command('backup <file>')
    .description('write the home with its runs, files, settings and keys to a new file, even while a daemon works')
    .action((file: string, _, command: Command) =>
      act(async () => (await import('./backup.ts')).backup(file, command.optsWithGlobals())),
    )

  program
    .command('restore <file>')
    .description('make a home from a backup, in an empty folder')
    .action((file: string, _, command: Command) =>
      act(async () => (await import('./backup.ts')).restore(file, command.optsWithGlobals())),
    )

  const service = program.command('service').description('run the daemon or the hub as a service of systemd or launchd')
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
    .description('say whether the service runs')
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
    .command('upgrade [release]')
    .description('verify a release, a file or an address, and install it; without one, say how to upgrade this cadre')
    .option('--downgrade', 'also install an older version')
    .action((release: string | undefined, { downgrade = false }: { downgrade?: boolean }) =>
      act(async () => (await import('./upgrade.ts')).upgrade(release, downgrade)),
    )

  program
    .command('enrol')
    .description('connect this daemon to a hub: store its address and a realm token, which is read from stdin')
    .option('--hub <url>', 'the hub (CADRE_HUB_URL)')
    .action((_, command: Command) => act(async () => (await import('./enrol.ts')).enrol(command.optsWithGlobals())))

  const keys = program.command('keys').description('the keys with which publish signs')
  const keyCommands = () => import('./keys.ts')

  keys
    .command('new')
    .description('make a key, which publish uses from now on, and print its public half')
    .option('--json', 'print JSON')
    .action((_, command: Command) => act(async () => (await keyCommands()).newKey(command.optsWithGlobals())))

  keys
    .command('list', { isDefault: true })
    .description('list the public halves, the one in use first (default)')
    .option('--json', 'print JSON')
    .action((_, command: Command) => act(async () => (await keyCommands()).listKeys(command.optsWithGlobals())))

  keys
    .command('use <key>')
    .description('sign with the key that begins with this text')
    .action((key: string, _, command: Command) =>
      act(async () => (await keyCommands()).useKey(key, command.optsWithGlobals())),
    )

  program
    .command('completion <shell>')
    .description('print the script with which bash, zsh or fish completes this command')
    .action((shell: string) => act(async () => (await import('./completion.ts')).completion(shell)))

  program
    .command('complete [words...]', { hidden: true })
    .action((words: string[]) => act(async () => (await import('./complete.ts')).printWords(program, words)))
}
