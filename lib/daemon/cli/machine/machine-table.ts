// The commands about this machine: its page, settings, folders, services and keys.

import { type Entry, json, option } from '../kit/command-table.ts'

const settings = () => import('./settings.ts')
const workspaces = () => import('./workspaces.ts')
const service = () => import('./service.ts')
const keys = () => import('./keys.ts')
const system = option('--system', 'the service of the whole machine, which root installs, instead of yours')

/** From `status` to `completion`. */
export const MACHINE_COMMANDS: readonly Entry[] = [
  {
    usage: 'status',
    does: 'show what this home does and what needs attention',
    more: 'The report has the daemon, its slots and runs, the link to the hub, and the disk.',
    examples: [['']],
    options: [option('--hub <url>', 'the address of the hub (CADRE_HUB_URL, else the one of login)'), json],
    run: async options => (await import('./status.ts')).status(options),
  },
  {
    usage: 'dashboard',
    does: 'open the dashboard in a browser',
    more: 'If no browser can be opened, cadre prints the address. The address contains the local token: keep it to yourself.',
    examples: [[''], ['--no-open', 'only prints the address']],
    options: [option('--no-open', 'only print the address')],
    run: async options => (await import('./dashboard.ts')).dashboard(options),
  },
  {
    usage: 'settings',
    does: 'list, print and change settings and secrets',
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
        does: 'set or remove a setting',
        more: 'The value - reads the value from stdin. Without a value, the command removes the setting.',
        examples: [
          ['agents.wiki.base_url https://example.atlassian.net'],
          ['agents.wiki.api_token -', 'a secret, from stdin'],
          ["agents.wiki.api_token '${env:WIKI_TOKEN}'", 'taken from a variable at each use'],
          ['agents.wiki.api_token', 'removes it'],
        ],
        run: async (options, key: string, value?: string) => (await settings()).setSetting(key, value, options),
      },
    ],
  },
  {
    usage: 'workspaces',
    does: 'list and register folders that runs work in',
    examples: [['list'], ['add .']],
    below: [
      {
        usage: 'list',
        does: 'list the registered folders',
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
          option('--name <name>', 'the name of the workspace (default: that of the folder)'),
          option('--offer', 'let runs that the hub dispatches work in it'),
          option('--no-offer', 'stop letting dispatched runs work in it'),
          json,
        ],
        run: async (options, folder: string) => (await workspaces()).addWorkspace(folder, options),
      },
      {
        usage: 'remove <workspace>',
        does: 'forget a folder by its name, id or path; its files stay',
        examples: [['site']],
        options: [json],
        run: async (options, workspace: string) => (await workspaces()).removeWorkspace(workspace, options),
      },
    ],
  },
  {
    usage: 'home',
    does: 'say that the home was moved to this machine',
    examples: [['moved']],
    below: [
      {
        usage: 'moved',
        does: 'say that the home was moved here',
        more: 'From then on the hub refuses the daemon of the former home.',
        examples: [['']],
        run: async options => (await import('./home.ts')).moved(options),
      },
    ],
  },
  {
    usage: 'backup <file>',
    does: 'write the home to a new file',
    more: 'The file has the runs, files, settings and keys of the home: keep it safe. A daemon may work meanwhile.',
    examples: [['~/cadre-home.backup']],
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
    does: 'run the daemon or the hub as a service',
    more: 'The service is one of systemd or launchd. PROGRAM is daemon (the default) or hub.',
    examples: [['install'], ['status hub']],
    below: [
      {
        usage: 'install [program]',
        does: 'write the service and start it',
        more: 'PROGRAM is daemon (the default) or hub.',
        examples: [[''], ['hub --no-start'], ['--system', 'as root, for the machine']],
        options: [system, option('--no-start', 'only write the service')],
        run: async (options, program?: string) => (await service()).installService(program, options),
      },
      {
        usage: 'print [program]',
        does: 'print the file that install would write',
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
        does: 'stop and remove the service; its state stays',
        examples: [['']],
        options: [system],
        run: async (options, program?: string) => (await service()).removeService(program, options),
      },
    ],
  },
  {
    usage: 'drain',
    does: 'stop the daemon once what it executes has ended',
    more: 'No new phase begins. What waits for a person or a time does not hold it up. The next start continues the runs.',
    examples: [[''], ['--most 1h', 'phases that take longer are interrupted, and begin anew at the next start']],
    options: [option('--most <duration>', 'how long phases may take to end (default 10m)')],
    run: async options => (await import('./drain.ts')).drain(options),
  },
  {
    usage: 'upgrade [release]',
    does: 'verify a release of cadre and install it',
    more: 'RELEASE is a file or an address. Without it, cadre says how to upgrade this installation, and fetches nothing.',
    examples: [
      ['', 'says how to upgrade this cadre'],
      ['~/Downloads/cadre-0.2.0-linux-x64', 'with SHA256SUMS and SHA256SUMS.sig beside it'],
      ['https://example.com/cadre/0.2.0/', 'a folder with the files of a release'],
    ],
    options: [option('--downgrade', 'also install an older version')],
    run: async ({ downgrade = false }, release?: string) => (await import('./upgrade.ts')).upgrade(release, downgrade),
  },
  {
    usage: 'enrol',
    does: 'connect this machine to a hub',
    more: 'The command reads a realm token from stdin (`realm-token` makes one), and stores it with the address of the hub.',
    examples: [['--hub https://hub.example.com < realm-token']],
    options: [option('--hub <url>', 'the address of the hub (CADRE_HUB_URL)')],
    run: async options => (await import('./enrol.ts')).enrol(options),
  },
  {
    usage: 'keys',
    does: 'make and list the keys that sign what you publish',
    examples: [['new'], ['list']],
    below: [
      {
        usage: 'new',
        does: 'make a key and print its public half',
        more: 'From then on, `publish` signs with this key.',
        examples: [['']],
        options: [json],
        run: async options => (await keys()).newKey(options),
      },
      {
        usage: 'list',
        does: 'list the public halves of your keys, the one in use first',
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
    does: 'print the completion script of bash, zsh or fish',
    examples: [
      ['bash > ~/.local/share/bash-completion/completions/cadre'],
      ['zsh'],
      ['fish > ~/.config/fish/completions/cadre.fish'],
    ],
    run: async (_, shell: string) => (await import('./completion.ts')).completion(shell),
  },
]
