// The commands `teams`, `daemons` and `queue`.

import { type Group, inRealm, option, page, yes } from './entry.ts'

const teams = () => import('./teams.ts')
const daemons = () => import('./daemons.ts')
const queue = () => import('./queue.ts')

export const WORK: readonly Group[] = [
  {
    word: 'teams',
    does: 'the packages that are published at a hub',
    entries: [
      {
        usage: 'list',
        does: 'list teams, each with its newest version (default)',
        example: '--scope acme --search report',
        options: [
          option('--scope <scope>', 'only those of this scope'),
          option('--search <text>', 'part of the name or the description'),
          ...page,
        ],
        isDefault: true,
        run: async options => (await teams()).listTeams(options),
      },
      {
        usage: 'versions <team>',
        does: 'list the versions of a team, newest first',
        example: '@acme/repo-report',
        options: page,
        run: async (options, team) => (await teams()).listVersions(team, options),
      },
      {
        usage: 'show <team>',
        does: 'show a version: inputs, signature, what it uses',
        example: '@acme/repo-report@^1.2',
        run: async (options, team) => (await teams()).showTeam(team, options),
      },
      {
        usage: 'yank <team>',
        does: 'hide a version; what is pinned to it still works',
        example: '@acme/repo-report@1.2.0 --yes',
        options: [yes],
        run: async (options, team) => (await teams()).yankTeam(team, options),
      },
    ],
  },
  {
    word: 'daemons',
    does: 'the machines of a realm',
    entries: [
      {
        usage: 'list',
        does: 'list daemons with their state and labels (default)',
        example: '--realm prod',
        options: [option('--realm <realm>', 'only those of this realm'), ...page],
        isDefault: true,
        run: async options => (await daemons()).listDaemons(options),
      },
      {
        usage: 'show <daemon>',
        does: 'show a daemon: labels, workspaces, and what its doctor found',
        example: 'build-1',
        run: async (options, daemon) => (await daemons()).showDaemon(daemon, options),
      },
      {
        usage: 'doctor',
        does: 'show which agents are ready on which daemons',
        example: '--realm prod',
        options: [option('--realm <realm>', 'only daemons of this realm')],
        run: async options => (await daemons()).doctorGrid(options),
      },
      {
        usage: 'approve <daemon>',
        does: 'let a daemon that a plain member enrolled get jobs',
        example: 'build-1',
        run: async (options, daemon) => (await daemons()).approveDaemon(daemon, options),
      },
      {
        usage: 'pause <daemon>',
        does: 'let a daemon finish what it has and take no more runs',
        example: 'build-1',
        run: async (options, daemon) => (await daemons()).pauseDaemon(daemon, true, options),
      },
      {
        usage: 'unpause <daemon>',
        does: 'let it take runs again',
        example: 'build-1',
        run: async (options, daemon) => (await daemons()).pauseDaemon(daemon, false, options),
      },
      {
        usage: 'remove <daemon>',
        does: 'remove a daemon from its realm',
        example: 'build-1 --yes',
        options: [yes],
        run: async (options, daemon) => (await daemons()).removeDaemon(daemon, options),
      },
    ],
  },
  {
    word: 'queue',
    does: 'the jobs that no daemon has accepted yet',
    entries: [
      {
        usage: 'list',
        does: 'list the jobs of a realm, and what each waits for (default)',
        example: '--realm prod',
        options: [inRealm, ...page],
        isDefault: true,
        run: async options => (await queue()).listQueue(options),
      },
      {
        usage: 'cancel <run>',
        does: 'cancel a run that waits; the beginning of its id, or `last`, is enough',
        example: '01a1fd72',
        run: async (options, run) => (await queue()).cancelQueued(run, options),
      },
    ],
  },
]
