// The commands about teams and agents.

import { type Entry, json, option } from '../kit/command-table.ts'
import { collect } from '../kit/options.ts'

const teams = () => import('./teams.ts')

/** From `init` to `doctor`. */
export const TEAM_COMMANDS: readonly Entry[] = [
  {
    usage: 'init [folder]',
    does: 'write a new team; asks at a terminal for what is not given',
    examples: [
      [''],
      ['report --from http'],
      ['triage --from issue-triage --name ticket-triage', 'from a finished example'],
    ],
    options: [
      option('--from <start>', 'exec, http, llm, map, or the name of an example'),
      option('--name <name>', 'name of the team (default: that of the folder)'),
    ],
    run: async (options, folder?: string) => (await import('./init.ts')).init(folder, options),
  },
  {
    usage: 'examples [example] [folder]',
    does: 'list the finished teams that come with cadre, or copy one into a folder',
    examples: [[''], ['release-checklist'], ['changelog ~/teams/changelog']],
    options: [json],
    run: async (options, example?: string, folder?: string) =>
      (await import('./examples.ts')).examples(example, folder, options),
  },
  {
    usage: 'validate <team>',
    does: 'check a team and everything that it uses',
    examples: [['./team'], ['./team --json', 'for programs']],
    options: [json],
    run: async (options, team: string) => (await teams()).validate(team, options),
  },
  {
    usage: 'plan <team>',
    does: 'print what a run would do, without doing it',
    examples: [['./team -i env=live', 'what it would write, and with whose credential']],
    options: [
      option('-i, --input <name=value>', 'an input; name=@file reads a file, name=@- stdin', collect),
      option('--inputs <file>', 'inputs as a JSON object'),
      json,
    ],
    run: async (options, team: string) => (await import('./plan.ts')).plan(team, options),
  },
  {
    usage: 'schema',
    does: 'print the JSON Schema of team.yml',
    examples: [['> team.schema.json']],
    run: async options => (await teams()).schema(options),
  },
  {
    usage: 'agents [agent]',
    does: 'list the agents, or print the manual of one',
    examples: [[''], ['issues', 'its manual']],
    options: [json],
    run: async (options, agent?: string) => (await teams()).agents(agent, options),
  },
  {
    usage: 'agent',
    does: 'manage your own agents',
    examples: [['new stock']],
    below: [
      {
        usage: 'new <name>',
        does: 'write an agent and its test into the home',
        examples: [['stock'], ['fetcher --from http', 'a copy of a built-in agent']],
        options: [
          option('--from <agent>', 'a built-in agent to copy, such as http'),
          option('--built-in', 'write them into the repository of cadre instead'),
        ],
        run: async (options, name: string) => (await import('./agent.ts')).agentNew(name, options),
      },
    ],
  },
  {
    usage: 'doctor [agent]',
    does: 'check settings, and ask each system whose the credential is and which permissions are missing',
    examples: [[''], ['issues@eu', 'one account']],
    options: [json],
    run: async (options, agent?: string) => (await import('./doctor.ts')).doctor(agent, options),
  },
]
