// The commands about teams and agents. Each loads its modules when it is called.

import type { Command } from 'commander'
import type { Act } from '../kit/act.ts'
import { collect } from '../kit/options.ts'

/** From `init` to `doctor`. */
export function addTeamCommands(program: Command, act: Act): void {
  program
    .command('init [folder]')
    .description('write a new team; asks at a terminal for what is not given')
    .option('--from <start>', 'exec, http, llm, map, or the name of an example')
    .option('--name <name>', 'name of the team (default: that of the folder)')
    .action((folder: string | undefined, _, command: Command) =>
      act(async () => (await import('./init.ts')).init(folder, command.optsWithGlobals())),
    )

  program
    .command('examples [example] [folder]')
    .description('list the finished teams that come with cadre, or copy one into a folder')
    .option('--json', 'print JSON')
    .action((example: string | undefined, folder: string | undefined, _, command: Command) =>
      act(async () => (await import('./examples.ts')).examples(example, folder, command.optsWithGlobals())),
    )

  program
    .command('validate <team>')
    .description('check a team and everything that it uses')
    .option('--json', 'print JSON')
    .action((team: string, _, command: Command) =>
      act(async () => (await import('./teams.ts')).validate(team, command.optsWithGlobals()), team),
    )

  program
    .command('plan <team>')
    .description('print what a run would do, without doing it')
    .option('-i, --input <name=value>', 'an input; name=@file reads a file, name=@- stdin', collect)
    .option('--inputs <file>', 'inputs as a JSON object')
    .option('--json', 'print JSON')
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
    .option('--json', 'print JSON')
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
    .description('check settings, and ask each system whose the credential is and which permissions are missing')
    .option('--json', 'print JSON')
    .action((agent: string | undefined, _, command: Command) =>
      act(async () => (await import('./doctor.ts')).doctor(agent, command.optsWithGlobals())),
    )
}
