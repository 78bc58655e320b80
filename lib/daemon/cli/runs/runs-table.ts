// The commands about runs.

import { SHOWN_RUN_STATES } from '../../../wire/states.ts'
import { type Entry, json, ofHub, option } from '../kit/command-table.ts'
import { collect, count, offset, runName } from '../kit/options.ts'
import { sinceOf as since } from '../kit/since.ts'

const explain = () => import('./explain.ts')
const record = option('--json', 'print the run record')
const limit = option('--limit <number>', 'how many (20)', count)

/** From `run` to `decide`. */
export const RUN_COMMANDS: readonly Entry[] = [
  {
    usage: 'run <team>',
    does: 'run a team: a folder, a team.yml, or @scope/name',
    examples: [
      ['examples/repo-report -i folder=~/src/app'],
      ['./team -i names=\'["Ada","Grace"]\' -i password=@-', 'a list, and a secret from stdin'],
      ['@acme/report@^1.2 --inputs inputs.json --workspace ~/src/app', 'a published team'],
      ['./team --detach', 'in the daemon, without following it'],
    ],
    options: [
      option('-i, --input <name=value>', 'an input; name=@file reads a file, name=@- stdin', collect),
      option('--inputs <file>', 'inputs as a JSON object'),
      option('--name <name>', 'name of the run', runName),
      option('--workspace <folder>', 'where to work: a folder, or the name of a workspace (default: here)'),
      option('-d, --detach', 'start it in the daemon and do not follow it'),
      record,
    ],
    run: async (options, team: string) => (await import('./run.ts')).run(team, options),
  },
  {
    usage: 'watch <run>',
    does: 'follow a run that another process executes; Ctrl-C twice cancels it',
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
      ['--hub', 'those of the hub'],
    ],
    options: [
      option('--all', 'include sub-runs'),
      option('--state <state>', 'only runs in this state').choices(SHOWN_RUN_STATES),
      option('--team <name>', 'only runs of this team: @local/report, or report of any scope'),
      option('--since <when>', 'only runs that began since then: 2h, 3d, 2026-05-02', since),
      limit,
      option('--offset <number>', 'how many to skip (0)', offset),
      ofHub('list the runs of the hub'),
      json,
    ],
    run: async options => (await import('./runs.ts')).runs(options),
    below: [
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
    does: 'show the record of a run: inputs, outputs, files, and what it wrote to other systems',
    examples: [['last']],
    options: [ofHub('show what the hub knows of it'), json],
    run: async (options, run: string) => (await explain()).showRun(run, options),
  },
  {
    usage: 'tree <run>',
    does: 'show the whole tree of a run, with its phases',
    examples: [['last'], ['last --hub', 'what the hub knows of it']],
    options: [ofHub('show what the hub knows of it'), json],
    run: async (options, run: string) => (await import('./tree.ts')).tree(run, options),
  },
  {
    usage: 'phases <run>',
    does: 'show the phases of a run',
    examples: [['last'], ['last --json']],
    options: [ofHub('as the hub has them'), json],
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
    does: 'say why a run ended as it did, and which commands continue it',
    examples: [['last'], ['last --hub', 'a run of the hub']],
    options: [
      option('--ask', 'first ask other systems about writes that are in doubt or not yet confirmed'),
      ofHub('show what the hub knows of it'),
      json,
    ],
    run: async (options, run: string) => (await explain()).why(run, options),
  },
  {
    usage: 'files <run> [get] [path]',
    does: 'list the files that a run wrote; `files RUN get PATH` prints one',
    examples: [['last'], ['last get report/report.md -o report.md']],
    options: [option('-o, --output <file>', 'write it to this file'), json],
    run: async (options, run: string, verb?: string, path?: string) =>
      (await import('./files.ts')).files(run, verb, path, options),
  },
  {
    usage: 'resume <run>',
    does: 'continue a run that was interrupted or has ended: phases that completed do not run again, and later changes of the team do not count',
    examples: [
      ['last', 'repeats what did not complete'],
      ['last --from build', 'repeats a phase, and what depends on it'],
      ['last -i password=@-', 'gives a secret input again'],
    ],
    options: [
      option('--from <phase>', 'repeat this phase and what depends on it'),
      option('--failed', 'also repeat the failed items of maps that completed (on_item_failure: continue)'),
      option('-i, --input <name=value>', 'give a secret input again; name=@- reads stdin, name=@file a file', collect),
      ofHub('a run of the hub'),
      record,
    ],
    run: async (options, run: string) => (await import('./change.ts')).resume(run, options),
  },
  {
    usage: 'cancel <run>',
    does: 'cancel a run and all runs below it; a second cancel also stops its cleanup phases',
    examples: [['last'], ['last --hub', 'a run of the hub']],
    options: [ofHub('a run of the hub')],
    run: async (options, run: string) => (await import('./change.ts')).cancel(run, options),
  },
  {
    usage: 'reviews',
    does: 'list the reviews that wait for people',
    examples: [[''], ['--all'], ['--hub', 'those of the hub']],
    options: [option('--all', 'include decided reviews'), limit, ofHub('those of the hub'), json],
    run: async options => (await import('./reviews.ts')).reviews(options),
  },
  {
    usage: 'decide <review> [decision]',
    does: 'answer a review: approve or reject a gate; retry, skip, complete or fail an escalation; asks at a terminal for what is missing',
    examples: [
      ['last', 'asks for the decision and the form'],
      ['last approve --values \'{"space":"DOCS"}\' --comment "looks good"'],
      ['last retry', 'of a phase that failed and escalated'],
      ['last complete --values \'{"pages":3}\'', 'the work was done by hand; the phase has these data and no files'],
    ],
    options: [
      option('--comment <text>', ''),
      option('--values <json>', 'the values of the form; with complete, the data of the phase'),
      ofHub('a review of the hub'),
    ],
    run: async (options, review: string, decision?: string) =>
      (await import('./reviews.ts')).decide(review, decision, options),
  },
]
