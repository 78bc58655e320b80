// The commands about runs.

import { SHOWN_RUN_STATES } from '../../../wire/states.ts'
import { type Entry, inEnvironment, inWorkspace, json, ofHub, option } from '../kit/command-table.ts'
import { collect, count, offset, runName } from '../kit/options.ts'
import { sinceOf as since } from '../kit/since.ts'

const explain = () => import('./explain.ts')
const teamRuns = () => import('./team-runs.ts')
const record = option('--json', 'print the run as JSON')
const limit = option('--limit <number>', 'how many, from 1 to 100 (20)', count)

/** From `run` to `decide`. */
export const RUN_COMMANDS: readonly Entry[] = [
  {
    usage: 'run <team>',
    does: 'run a team: a folder, a team.yml, or @scope/name',
    examples: [
      ['examples/repo-report -i folder=~/src/app'],
      ['./team -i names=\'["Ada","Grace"]\' -i password=@-', 'a list, and a secret from stdin'],
      ['@acme/report@^1.2 --inputs inputs.json --workspace ~/src/app', 'a published team'],
      ['./team --env staging', 'with the settings of an environment'],
      ['./team --detach', 'in the daemon, without following it'],
    ],
    options: [
      option('-i, --input <name=value>', 'an input; name=@file reads a file, name=@- stdin', collect),
      option('--inputs <file>', 'a file with the inputs as a JSON object'),
      option('--name <name>', 'a name for the run, which lists show', runName),
      inWorkspace,
      inEnvironment,
      option('-d, --detach', 'start it in the daemon and do not follow it'),
      record,
    ],
    run: async (options, team: string) => (await import('./run.ts')).run(team, options),
  },
  {
    usage: 'watch <run>',
    does: 'follow a run until it ends or waits for a person',
    more: 'Ctrl-C twice cancels the run.',
    examples: [['last'], ['01a1fd72', 'the beginning of an id'], ['last --hub', 'a run of the hub']],
    options: [ofHub('a run of the hub'), record],
    run: async (options, run: string) => (await import('./watch.ts')).watchRun(run, options),
  },
  {
    usage: 'runs',
    does: 'list runs, newest first',
    examples: [
      [''],
      ['--state failed --since 2d'],
      ['--team @local/report --limit 100 --offset 100'],
      ['--search TICKET-7 --all', 'also in runs that other runs started'],
      ['--started-by person', 'also token:ci, schedule:nightly'],
      ['--hub', 'runs of the hub'],
    ],
    options: [
      option('--all', 'include the runs that team and map phases started'),
      option('--state <state>', 'only runs in this state').choices(SHOWN_RUN_STATES),
      option('--team <name>', 'only runs of this team: @local/report, or report of any scope'),
      option('--started-by <what>', 'only runs with this starter: person, token:ci, schedule:nightly'),
      option('--search <text>', 'only runs with this in their id, name, team, inputs or errors'),
      option('--since <when>', 'only runs that began since then: 2h, 3d, 2026-05-02', since),
      limit,
      option('--offset <number>', 'how many of the newest to skip (0)', offset),
      ofHub('list the runs of the hub'),
      json,
    ],
    run: async options => (await import('./runs.ts')).runs(options),
    below: [
      {
        usage: 'stats <team>',
        does: 'count the runs of a team, and how long they took',
        more: 'Half of the completed runs took at most the time after `half within`. Runs that were cancelled, and runs that have not ended, are in `runs` only.',
        examples: [['@local/report'], ['report --since 7d', 'of any scope'], ['@acme/report --hub', 'runs of the hub']],
        options: [
          option('--since <when>', 'only runs that were asked for since then: 7d, 2026-05-02 (30d)', since),
          ofHub('count the runs of the hub'),
          json,
        ],
        run: async (options, team: string) => (await teamRuns()).runStats(team, options),
      },
      {
        usage: 'history <team>',
        does: 'list the runs of a team with what changed since the last good one',
        examples: [['@local/report'], ['@acme/report --limit 5 --hub', 'runs of the hub']],
        options: [
          limit,
          option('--offset <number>', 'how many of the newest to skip (0)', offset),
          ofHub('list the runs of the hub'),
          json,
        ],
        run: async (options, team: string) => (await teamRuns()).teamHistory(team, options),
      },
      {
        usage: 'delete <run>',
        does: 'delete an ended run, all runs below it, and their files',
        examples: [['01a1fd72']],
        run: async (options, run: string) => (await import('./runs.ts')).deleteRun(run, options),
      },
    ],
  },
  {
    usage: 'show <run>',
    does: 'show inputs, outputs, files and writes of a run',
    examples: [['last']],
    options: [ofHub('show what the hub knows of it'), json],
    run: async (options, run: string) => (await explain()).showRun(run, options),
  },
  {
    usage: 'tree <run>',
    does: 'show a run with all runs and phases below it',
    examples: [['last'], ['last --failed'], ['last --hub', 'a run of the hub']],
    options: [
      option('--failed', 'only what failed, and what is above it'),
      ofHub('show what the hub knows of it'),
      json,
    ],
    run: async (options, run: string) => (await import('./tree.ts')).tree(run, options),
  },
  {
    usage: 'phases <run>',
    does: 'show the phases of a run',
    examples: [['last'], ['last --failed']],
    options: [
      option('--failed', 'only phases that failed, or whose items failed'),
      ofHub('show what the hub knows of the phases'),
      json,
    ],
    run: async (options, run: string) => (await explain()).phases(run, options),
  },
  {
    usage: 'logs <run>',
    does: 'print the log of a run and of all runs below it',
    examples: [['last -f'], ['last --failed'], ['last --phase build --since 10m']],
    options: [
      option('-f, --follow', 'print new lines until the run ends'),
      option('--phase <name>', 'only the lines of this phase, and of runs below it'),
      option('--failed', 'only the lines of failed phases'),
      option('--since <when>', 'only lines since then: 10m, 2h, 2026-05-02T14:00', since),
      ofHub('print what the hub has, and say which lines are missing or still to come'),
      json,
    ],
    run: async (options, run: string) => (await import('./logs.ts')).logs(run, options),
  },
  {
    usage: 'why <run>',
    does: 'explain why a run failed, and how to go on',
    more: 'The command also says what a run waits for, and which failures were tolerated. With the name of a trigger, or the id of a firing, it says why no run started.',
    examples: [
      ['last'],
      ['last-failed', 'the newest that has failed, whatever has run since'],
      ['last --hub', 'a run of the hub'],
      ['nightly', 'why a trigger has started nothing'],
    ],
    options: [
      option('--ask', 'first ask other systems about writes that are in doubt or not yet confirmed'),
      option('--realm <realm>', 'a trigger of this realm of the hub'),
      ofHub('show what the hub knows of it'),
      json,
    ],
    run: async (options, run: string) => (await explain()).why(run, options),
  },
  {
    usage: 'files <run> [get] [path]',
    does: 'list the files that a run wrote, or print one',
    more: '`files RUN get PATH` prints the file of this path.',
    examples: [['last'], ['last get report/report.md -o report.md']],
    options: [option('-o, --output <file>', 'write to this file instead of printing'), json],
    run: async (options, run: string, verb?: string, path?: string) =>
      (await import('./files.ts')).files(run, verb, path, options),
  },
  {
    usage: 'resume <run>',
    does: 'continue a run, or repeat what did not complete',
    more: 'The run keeps the team.yml of its start: after a correction of team.yml, start a new run. Completed phases do not run again. A failure that was passed over, and a phase that `when` skipped, stay too if a completed phase depends on them.',
    examples: [
      ['last', 'repeats what did not complete'],
      ['last --from build', 'repeats a phase, and what depends on it'],
      ['last --failed --plan', 'says what would be repeated, and changes nothing'],
      ['last -i password=@-', 'gives a secret input again'],
    ],
    options: [
      option('--from <phase>', 'repeat this phase and what depends on it'),
      option('--failed', 'also repeat what failed and was passed over, and what depends on it'),
      option('--outputs', 'make outputs again that could not be made, and repeat nothing else'),
      option('--plan', 'only say what stays and what would run again'),
      option('-i, --input <name=value>', 'give a secret input again; name=@- reads stdin, name=@file a file', collect),
      ofHub('a run of the hub'),
      record,
    ],
    run: async (options, run: string) => (await import('./change.ts')).resume(run, options),
  },
  {
    usage: 'cancel <run>',
    does: 'stop a run and all runs below it',
    more: 'Phases with `always: true` still run, such as a cleanup. A second cancel stops them too.',
    examples: [['last'], ['last --hub', 'a run of the hub']],
    options: [ofHub('a run of the hub')],
    run: async (options, run: string) => (await import('./change.ts')).cancel(run, options),
  },
  {
    usage: 'reviews',
    does: 'list the reviews: what waits for a person',
    examples: [[''], ['--all'], ['--hub', 'reviews of the hub']],
    options: [option('--all', 'include decided reviews'), limit, ofHub('list the reviews of the hub'), json],
    run: async options => (await import('./reviews.ts')).reviews(options),
  },
  {
    usage: 'decide <review> [decision]',
    does: 'answer a review',
    more: 'A gate takes approve or reject. A phase that failed and escalated takes retry, skip, complete or fail. At a terminal, cadre asks for what you leave out.',
    examples: [
      ['last', 'asks for the decision and the form'],
      ['last approve --values \'{"space":"DOCS"}\' --comment "looks good"'],
      ['last retry', 'of a phase that failed and escalated'],
      ['last complete --values \'{"pages":3}\'', 'the work was done by hand; the phase has these data and no files'],
    ],
    options: [
      option('--comment <text>', 'a sentence that the run keeps with the decision'),
      option('--values <json>', 'the values of the form as a JSON object; with complete, the data that the phase gets'),
      ofHub('a review of the hub'),
    ],
    run: async (options, review: string, decision?: string) =>
      (await import('./reviews.ts')).decide(review, decision, options),
  },
]
