// The commands about teams and agents.

import { type Entry, inEnvironment, inWorkspace, json, option } from '../kit/command-table.ts'
import { collect } from '../kit/options.ts'

const teams = () => import('./teams.ts')

/** From `init` to `doctor`. */
export const TEAM_COMMANDS: readonly Entry[] = [
  {
    usage: 'init [folder]',
    does: 'write a new team into a folder',
    more: 'At a terminal, cadre asks for what you leave out.',
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
    does: 'list finished teams, or copy one into a folder',
    examples: [[''], ['release-checklist', 'into the folder release-checklist'], ['changelog ~/teams/changelog']],
    options: [json],
    run: async (options, example?: string, folder?: string) =>
      (await import('./examples.ts')).examples(example, folder, options),
  },
  {
    usage: 'validate <team>',
    does: 'check a team with all that it uses; run nothing',
    examples: [['./team'], ['./team --json', 'for programs']],
    options: [json],
    run: async (options, team: string) => (await teams()).validate(team, options),
  },
  {
    usage: 'fmt [file...]',
    does: 'format team.yml, in place',
    more: 'cadre keeps comments, and your choice of quotes, braces and line breaks in long texts. A folder stands for every team in it.',
    examples: [[''], ['team.yml ticket/team.yml'], ['--check .', 'print what would change; exit 1 if anything would']],
    options: [option('--check', 'change nothing; print the difference, and exit 1 if there is one')],
    run: async (options, ...files) => (await import('./fmt.ts')).fmt(files.flat(), options),
  },
  {
    usage: 'lint <team>',
    does: 'find probable mistakes in a valid team',
    more: `The rules are unused-input, unused-phase, unused-team, unseen-failure, unseen-truncation, secret-in-file and
write-without-gate. A comment \`# lint: allow RULE\` in a line, or in the line above, allows it there.`,
    examples: [['./team'], ['./team --strict', 'exit 1 if anything is found'], ['./team --json', 'for programs']],
    options: [option('--strict', 'exit 1 if anything is found'), json],
    run: async (options, team: string) => (await import('./lint.ts')).lint(team, options),
  },
  {
    usage: 'plan <team>',
    does: 'print what a run would do, and do nothing',
    more: 'The plan says what each phase would write, where, and with whose credential.',
    examples: [['./team'], ['./team -i days=7'], ['./team --env staging', 'with the settings of an environment']],
    options: [
      option('-i, --input <name=value>', 'an input; name=@file reads a file, name=@- stdin', collect),
      option('--inputs <file>', 'a file with the inputs as a JSON object'),
      inWorkspace,
      inEnvironment,
      json,
    ],
    run: async (options, team: string) => (await import('./plan.ts')).plan(team, options),
  },
  {
    usage: 'explain [field]',
    does: 'say what a field of team.yml is, with an example',
    examples: [['', 'the fields of a team'], ['phases.retry'], ['phases.review.inputs']],
    options: [json],
    run: async (options, field?: string) => (await import('./explain.ts')).explain(field, options),
  },
  {
    usage: 'schema',
    does: 'print the JSON Schema of team.yml, for editors',
    more: 'With --write, the command writes the schema to a file, and prints the line for the top of team.yml.',
    examples: [['> team.schema.json'], ['--write', 'to team.schema.json'], ['--write ~/.cadre/team.schema.json']],
    options: [option('--write [file]', 'write the schema to this file (default: team.schema.json)')],
    run: async options => (await teams()).schema(options),
  },
  {
    usage: 'lsp',
    does: 'serve an editor that has a team.yml open',
    more: `A language server: it shows mistakes as \`validate\` does while you type, completes, explains, and goes to what is named.
Editors start it; docs/editors.md has the lines for their settings.`,
    examples: [['--stdio', 'as editors call it']],
    options: [option('--stdio', 'speak over stdin and stdout, which is the only way')],
    run: async options => (await import('../lsp/lsp.ts')).lsp(options),
  },
  {
    usage: 'agents [agent]',
    does: 'list the agents, or print the manual of one',
    examples: [[''], ['issues', 'its manual'], ['issues --action search', 'a phase to paste']],
    options: [option('--action <name>', 'print a phase with this action, to paste into a team.yml'), json],
    run: async (options, agent?: string) => (await teams()).agents(agent, options),
  },
  {
    usage: 'agent',
    does: 'write an agent of your own',
    examples: [['new stock']],
    below: [
      {
        usage: 'new <name>',
        does: 'write an agent and its test into the home',
        examples: [['stock'], ['fetcher --from http', 'begins with a copy of http']],
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
    does: 'check the settings and credentials of agents',
    more: `cadre asks each system whose the credential is, and which permissions it lacks: with the plain settings, and with
those of each environment. What no team of the registered workspaces and of the last 30 days' runs needs is a note.`,
    examples: [[''], ['issues@eu', 'one account'], ['ssh --env staging', 'with the settings of an environment']],
    options: [inEnvironment, json],
    run: async (options, agent?: string) => (await import('./doctor.ts')).doctor(agent, options),
  },
]
