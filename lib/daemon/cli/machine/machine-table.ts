// The commands about this machine: its page, settings, folders, services and keys.

import { type Entry, json, option } from '../kit/command-table.ts'

const settings = () => import('./settings.ts')
const workspaces = () => import('./workspaces.ts')
const service = () => import('./service.ts')
const keys = () => import('./keys.ts')
const system = option('--system', 'a service of the system instead of yours')

/** From `dashboard` to `completion`. */
export const MACHINE_COMMANDS: readonly Entry[] = [
  {
    usage: 'dashboard',
    does: 'open the page of the daemon in a browser, or print its address if no browser can be opened',
    examples: [[''], ['--no-open', 'only its address']],
    options: [option('--no-open', 'print the address, which contains the local token')],
    run: async options => (await import('./dashboard.ts')).dashboard(options),
  },
  {
    usage: 'settings',
    does: 'settings of agents and of the daemon',
    examples: [['list'], ['set agents.wiki.api_token -', 'a secret, from stdin']],
    below: [
      {
        usage: 'list',
        does: 'list the settings; secrets are masked',
        examples: [['']],
        options: [json],
        run: async options => (await settings()).listSettings(options),
      },
      {
        usage: 'get <key>',
        does: 'print a setting; a secret is masked',
        examples: [['agents.wiki.base_url']],
        run: async (options, key: string) => (await settings()).getSetting(key, options),
      },
      {
        usage: 'set <key> [value]',
        does: 'set a setting; the value - reads it from stdin, and no value removes the setting',
        examples: [
          ['agents.wiki.base_url https://example.atlassian.net'],
          ['agents.wiki.api_token -', 'from stdin'],
          ["agents.wiki.api_token '${env:WIKI_TOKEN}'", 'where it is'],
          ['agents.wiki.api_token', 'removes it'],
        ],
        run: async (options, key: string, value?: string) => (await settings()).setSetting(key, value, options),
      },
    ],
  },
  {
    usage: 'workspaces',
    does: 'the folders that runs work in',
    examples: [['list'], ['add .']],
    below: [
      {
        usage: 'list',
        does: 'list them',
        isDefault: true,
        examples: [['']],
        options: [json],
        run: async options => (await workspaces()).listWorkspaces(options),
      },
      {
        usage: 'add <folder>',
        does: 'register a folder, or change its name or offer',
        examples: [['. --offer'], ['~/src/site --name site'], ['. --no-offer', 'dispatched runs no longer work in it']],
        options: [
          option('--name <name>', 'its name (default: the name of the folder)'),
          option('--offer', 'let runs that the hub dispatches work in it'),
          option('--no-offer', 'stop letting dispatched runs work in it'),
          json,
        ],
        run: async (options, folder: string) => (await workspaces()).addWorkspace(folder, options),
      },
      {
        usage: 'remove <workspace>',
        does: 'forget a folder, named by its name, id or path; the folder stays',
        examples: [['site']],
        options: [json],
        run: async (options, workspace: string) => (await workspaces()).removeWorkspace(workspace, options),
      },
    ],
  },
  {
    usage: 'home',
    does: 'the home of the daemon, where its state is',
    examples: [['moved']],
    below: [
      {
        usage: 'moved',
        does: 'say that the home was moved here: its hub then refuses the daemon at the former place',
        examples: [['']],
        run: async options => (await import('./home.ts')).moved(options),
      },
    ],
  },
  {
    usage: 'backup <file>',
    does: 'write the home with its runs, files, settings and keys to a new file, even while a daemon works',
    examples: [['~/cadre-home.backup', 'it has credentials in it: keep it safe']],
    run: async (options, file: string) => (await import('./backup.ts')).backup(file, options),
  },
  {
    usage: 'restore <file>',
    does: 'make a home from a backup, in an empty folder',
    examples: [['~/cadre-home.backup --home ~/.cadre']],
    run: async (options, file: string) => (await import('./backup.ts')).restore(file, options),
  },
  {
    usage: 'service',
    does: 'run the daemon or the hub as a service of systemd or launchd',
    examples: [['install'], ['status hub']],
    below: [
      {
        usage: 'install [program]',
        does: 'write a service and start it: daemon (default) or hub',
        examples: [[''], ['hub --no-start'], ['--system', 'as root, for the machine']],
        options: [system, option('--no-start', 'only write it')],
        run: async (options, program?: string) => (await service()).installService(program, options),
      },
      {
        usage: 'print [program]',
        does: 'print what install would write',
        examples: [['hub']],
        options: [system],
        run: async (options, program?: string) => (await service()).printService(program, options),
      },
      {
        usage: 'status [program]',
        does: 'say whether the service runs',
        examples: [['']],
        options: [system],
        run: async (options, program?: string) => (await service()).serviceStatus(program, options),
      },
      {
        usage: 'remove [program]',
        does: 'stop it and remove it; its state stays',
        examples: [['']],
        options: [system],
        run: async (options, program?: string) => (await service()).removeService(program, options),
      },
    ],
  },
  {
    usage: 'upgrade [release]',
    does: 'verify a release, a file or an address, and install it; without one, say how to upgrade this cadre',
    examples: [
      ['', 'how this cadre is upgraded'],
      ['~/Downloads/cadre-0.2.0-linux-x64', 'with SHA256SUMS and SHA256SUMS.sig beside it'],
      ['https://example.com/cadre/0.2.0/', 'a folder with the files of a release'],
    ],
    options: [option('--downgrade', 'also install an older version')],
    run: async ({ downgrade = false }, release?: string) => (await import('./upgrade.ts')).upgrade(release, downgrade),
  },
  {
    usage: 'enrol',
    does: 'connect this daemon to a hub: store its address and a realm token, which is read from stdin',
    examples: [['--hub https://hub.example.com < realm-token']],
    options: [option('--hub <url>', 'the hub (CADRE_HUB_URL)')],
    run: async options => (await import('./enrol.ts')).enrol(options),
  },
  {
    usage: 'keys',
    does: 'the keys with which publish signs',
    examples: [['new'], ['list']],
    below: [
      {
        usage: 'new',
        does: 'make a key, which publish uses from now on, and print its public half',
        examples: [['']],
        options: [json],
        run: async options => (await keys()).newKey(options),
      },
      {
        usage: 'list',
        does: 'list the public halves, the one in use first',
        isDefault: true,
        examples: [['--json']],
        options: [json],
        run: async options => (await keys()).listKeys(options),
      },
      {
        usage: 'use <key>',
        does: 'sign with the key that begins with this text',
        examples: [['ed25519:sf6n']],
        run: async (options, key: string) => (await keys()).useKey(key, options),
      },
    ],
  },
  {
    usage: 'completion <shell>',
    does: 'print the script with which bash, zsh or fish completes this command',
    examples: [['bash > ~/.local/share/bash-completion/completions/cadre'], ['zsh'], ['fish']],
    run: async (_, shell: string) => (await import('./completion.ts')).completion(shell),
  },
]
