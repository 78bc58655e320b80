// The commands about runs. Each loads its modules when it is called, so that `run` starts fast.

import { type Command, Option } from 'commander'
import { SHOWN_RUN_STATES } from '../../../wire/states.ts'
import type { Act } from '../kit/act.ts'
import { collect, count, hubAddressIn, offset, runName } from '../kit/options.ts'
import { sinceOf as since } from '../kit/since.ts'

/** From `run` to `decide`. */
export function addRunCommands(program: Command, act: Act): void {
  const explain = () => import('./explain.ts')

  program
    .command('run <team>')
    .description('run a team: a folder, a team.yml, or @scope/name')
    .option('-i, --input <name=value>', 'an input; name=@file reads a file, name=@- stdin', collect)
    .option('--inputs <file>', 'inputs as a JSON object')
    .option('--name <name>', 'name of the run', runName)
    .option('--workspace <folder>', 'where to work: a folder, or the name of a workspace (default: here)')
    .option('-d, --detach', 'start it in the daemon and do not follow it')
    .option('--json', 'print the run record')
    .action((team: string, _, command: Command) =>
      act(async () => (await import('./run.ts')).run(team, command.optsWithGlobals()), team),
    )

  program
    .command('watch <run>')
    .description('follow a run that another process executes; Ctrl-C twice cancels it')
    .option('--hub [url]', 'a run of the hub', hubAddressIn)
    .option('--json', 'print the run record')
    .action((run: string, _, command: Command) =>
      act(async () => (await import('./watch.ts')).watchRun(run, command.optsWithGlobals())),
    )

  const runList = program
    .command('runs')
    .description('list runs, newest first')
    .option('--all', 'include sub-runs')
    .addOption(new Option('--state <state>', 'only runs in this state').choices(SHOWN_RUN_STATES))
    .option('--team <name>', 'only runs of this team: @local/report, or report of any scope')
    .option('--since <when>', 'only runs that began since then: 2h, 3d, 2026-05-02', since)
    .option('--limit <number>', 'how many (20)', count)
    .option('--offset <number>', 'how many to skip (0)', offset)
    .option('--hub [url]', 'list the runs of the hub', hubAddressIn)
    .option('--json', 'print JSON')
    .action((_, command: Command) => act(async () => (await import('./runs.ts')).runs(command.optsWithGlobals())))

  runList
    .command('delete <run>')
    .description('delete an ended run, all runs below it, and their files')
    .action((run: string, _, command: Command) =>
      act(async () => (await import('./runs.ts')).deleteRun(run, command.optsWithGlobals())),
    )

  program
    .command('show <run>')
    .description('show the record of a run: inputs, outputs, files, and what it wrote to other systems')
    .option('--hub [url]', 'show what the hub knows of it', hubAddressIn)
    .option('--json', 'print JSON')
    .action((run: string, _, command: Command) =>
      act(async () => (await explain()).showRun(run, command.optsWithGlobals())),
    )

  program
    .command('tree <run>')
    .description('show the whole tree of a run, with its phases')
    .option('--hub [url]', 'show what the hub knows of it', hubAddressIn)
    .option('--json', 'print JSON')
    .action((run: string, _, command: Command) =>
      act(async () => (await import('./tree.ts')).tree(run, command.optsWithGlobals())),
    )

  program
    .command('phases <run>')
    .description('show the phases of a run')
    .option('--hub [url]', 'as the hub has them', hubAddressIn)
    .option('--json', 'print JSON')
    .action((run: string, _, command: Command) =>
      act(async () => (await explain()).phases(run, command.optsWithGlobals())),
    )

  program
    .command('logs <run>')
    .description('print the log of a run and of all runs below it')
    .option('-f, --follow', 'print new lines until the run ends')
    .option('--phase <name>', 'only the lines of this phase, and of runs below it')
    .option('--failed', 'only the lines of failed phases')
    .option('--since <when>', 'only lines since then: 10m, 2h, 2026-05-02T14:00', since)
    .option('--hub [url]', 'print what the hub has, and say which lines are missing or still to come', hubAddressIn)
    .option('--json', 'print JSON')
    .action((run: string, _, command: Command) =>
      act(async () => (await import('./logs.ts')).logs(run, command.optsWithGlobals())),
    )

  program
    .command('why <run>')
    .description('say why a run ended as it did, and which commands continue it')
    .option('--ask', 'first ask other systems about writes that are in doubt or not yet confirmed')
    .option('--hub [url]', 'show what the hub knows of it', hubAddressIn)
    .option('--json', 'print JSON')
    .action((run: string, _, command: Command) =>
      act(async () => (await explain()).why(run, command.optsWithGlobals())),
    )

  program
    .command('files <run> [get] [path]')
    .description('list the files that a run wrote; `files RUN get PATH` prints one')
    .option('-o, --output <file>', 'write it to this file')
    .option('--json', 'print JSON')
    .action((run: string, verb: string | undefined, path: string | undefined, _, command: Command) =>
      act(async () => (await import('./files.ts')).files(run, verb, path, command.optsWithGlobals())),
    )

  program
    .command('resume <run>')
    .description(
      'continue a run that was interrupted or has ended: phases that completed do not run again, and later changes of the team do not count',
    )
    .option('--from <phase>', 'repeat this phase and what depends on it')
    .option('--failed', 'also repeat the failed items of maps that completed (on_item_failure: continue)')
    .option('-i, --input <name=value>', 'give a secret input again; name=@- reads stdin, name=@file a file', collect)
    .option('--hub [url]', 'a run of the hub', hubAddressIn)
    .option('--json', 'print the run record')
    .action((run: string, _, command: Command) =>
      act(async () => (await import('./change.ts')).resume(run, command.optsWithGlobals())),
    )

  program
    .command('cancel <run>')
    .description('cancel a run and all runs below it; a second cancel also stops its cleanup phases')
    .option('--hub [url]', 'a run of the hub', hubAddressIn)
    .action((run: string, _, command: Command) =>
      act(async () => (await import('./change.ts')).cancel(run, command.optsWithGlobals())),
    )

  program
    .command('reviews')
    .description('list the reviews that wait for people')
    .option('--all', 'include decided reviews')
    .option('--limit <number>', 'how many (20)', count)
    .option('--hub [url]', 'those of the hub', hubAddressIn)
    .option('--json', 'print JSON')
    .action((_, command: Command) => act(async () => (await import('./reviews.ts')).reviews(command.optsWithGlobals())))

  program
    .command('decide <review> [decision]')
    .description(
      'answer a review: approve or reject a gate; retry, skip, complete or fail an escalation; asks at a terminal for what is missing',
    )
    .option('--comment <text>')
    .option('--values <json>', 'the values of the form; with complete, the data of the phase')
    .option('--hub [url]', 'a review of the hub', hubAddressIn)
    .action((review: string, decision: string | undefined, _, command: Command) =>
      act(async () => (await import('./reviews.ts')).decide(review, decision, command.optsWithGlobals())),
    )
}
