// What `--help` shows after the options: calls that make sense, as they can be typed. Commands about a hub have their own.

import type { Command } from 'commander'
import { calledAs } from '../../program/called-as.ts'
import { examplesText } from '../../text/command-words.ts'

/** By the words of a command: arguments and options, and what they do where that is not plain. */
const EXAMPLES: Readonly<Record<string, readonly (readonly [args: string, does?: string])[]>> = {
  serve: [[''], ['--port 7402 --home ~/.cadre-test', 'a second daemon with a home of its own']],
  run: [
    ['examples/repo-report -i folder=~/src/app'],
    ['./team -i names=\'["Ada","Grace"]\' -i password=@-', 'a list, and a secret from stdin'],
    ['@acme/report@^1.2 --inputs inputs.json --workspace ~/src/app', 'a published team'],
    ['./team --detach', 'in the daemon, without following it'],
  ],
  watch: [['last'], ['01a1fd72', 'the beginning of an id'], ['last --hub', 'a run of the hub']],
  dashboard: [[''], ['--no-open', 'only its address']],
  init: [[''], ['report --from http'], ['triage --from issue-triage --name ticket-triage', 'from a finished example']],
  examples: [[''], ['release-checklist'], ['changelog ~/teams/changelog']],
  completion: [['bash > ~/.local/share/bash-completion/completions/cadre'], ['zsh'], ['fish']],
  validate: [['./team'], ['./team --json', 'for programs']],
  plan: [['./team -i env=live', 'what it would write, and with whose credential']],
  schema: [['> team.schema.json']],
  agents: [[''], ['issues', 'its manual']],
  agent: [['new stock']],
  'agent new': [['stock'], ['fetcher --from http', 'a copy of a built-in agent']],
  doctor: [[''], ['issues@eu', 'one account']],
  runs: [
    [''],
    ['--state failed --since 2d'],
    ['--team @local/report --limit 100 --offset 100'],
    ['--hub', 'those of the hub'],
  ],
  'runs delete': [['01a1fd72']],
  show: [['last']],
  tree: [['last'], ['last --hub', 'what the hub knows of it']],
  phases: [['last'], ['last --json']],
  logs: [['last -f'], ['last --failed'], ['last --phase build --since 10m']],
  why: [['last'], ['last --hub', 'a run of the hub']],
  files: [['last'], ['last get report/report.md -o report.md']],
  resume: [
    ['last', 'repeats what did not complete'],
    ['last --from build', 'repeats a phase, and what depends on it'],
    ['last -i password=@-', 'gives a secret input again'],
  ],
  cancel: [['last'], ['last --hub', 'a run of the hub']],
  reviews: [[''], ['--all'], ['--hub', 'those of the hub']],
  decide: [
    ['last', 'asks for the decision and the form'],
    ['last approve --values \'{"space":"DOCS"}\' --comment "looks good"'],
    ['last retry', 'of a phase that failed and escalated'],
    ['last complete --values \'{"pages":3}\'', 'the work was done by hand; the phase has these data and no files'],
  ],
  settings: [['list'], ['set agents.wiki.api_token -', 'a secret, from stdin']],
  'settings list': [['']],
  'settings get': [['agents.wiki.base_url']],
  'settings set': [
    ['agents.wiki.base_url https://example.atlassian.net'],
    ['agents.wiki.api_token -', 'from stdin'],
    ["agents.wiki.api_token '${env:WIKI_TOKEN}'", 'where it is'],
    ['agents.wiki.api_token', 'removes it'],
  ],
  workspaces: [['list'], ['add .']],
  'workspaces list': [['']],
  'workspaces add': [
    ['. --offer'],
    ['~/src/site --name site'],
    ['. --no-offer', 'dispatched runs no longer work in it'],
  ],
  'workspaces remove': [['site']],
  backup: [['~/cadre-home.backup', 'it has credentials in it: keep it safe']],
  restore: [['~/cadre-home.backup --home ~/.cadre']],
  home: [['moved']],
  'home moved': [['']],
  service: [['install'], ['status hub']],
  'service install': [[''], ['hub --no-start'], ['--system', 'as root, for the machine']],
  'service print': [['hub']],
  'service status': [['']],
  'service remove': [['']],
  upgrade: [
    ['', 'how this cadre is upgraded'],
    ['~/Downloads/cadre-0.2.0-linux-x64', 'with SHA256SUMS and SHA256SUMS.sig beside it'],
    ['https://example.com/cadre/0.2.0/', 'a folder with the files of a release'],
  ],
  enrol: [['--hub https://hub.example.com < realm-token']],
  keys: [['new'], ['list']],
  'keys new': [['']],
  'keys list': [['--json']],
  'keys use': [['ed25519:sf6n']],
}

/** What `last` and the beginning of an id stand for. */
const LAST = {
  run: '\n<run> is an id, its first characters (six or more), or last: the newest top run, by its creation.\n',
  review: '\n<review> is an id, its first characters (six or more), or last: the newest review that waits.\n',
}

/** Adds the examples to the commands of `program` that have any. */
export function addExamples(program: Command): void {
  for (const command of program.commands.flatMap(each => [each, ...each.commands])) {
    const words = wordsOf(command)
    const examples = EXAMPLES[words] ?? []
    if (examples.length > 0) command.addHelpText('after', () => textOf(words, examples))
  }
}

/** `runs delete` */
function wordsOf(command: Command): string {
  const above = command.parent?.parent ? `${wordsOf(command.parent)} ` : ''
  return above + command.name()
}

function textOf(words: string, examples: (typeof EXAMPLES)[string]): string {
  const calls = examples.map(([args, does]) => {
    const call = `${words} ${args}`.trimEnd()
    return does === undefined ? call : `${call}     # ${does}`
  })
  const last = examples.find(([args]) => /^last\b/.test(args))
  const about = last ? LAST[words === 'decide' ? 'review' : 'run'] : ''
  return about + examplesText(calledAs(), calls)
}
