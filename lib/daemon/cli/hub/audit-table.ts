// The commands about audit logs: alone it lists that of the hub, and its own commands are about the home unless --hub
// says otherwise.

import { type Command, InvalidArgumentError, Option } from 'commander'
import { calledAs } from '../../../program/called-as.ts'
import { examplesText, refuseWord } from '../../../text/command-words.ts'
import type { Act } from '../kit/act.ts'
import { hubAddressIn } from '../kit/options.ts'
import { sinceOf as since } from '../kit/since.ts'
import { HELP_GROUP, option, page } from './entry.ts'

const RANGE = [
  option('--org <org>', 'only in this org of a hub; slug or number'),
  option('--since <when>', 'only since then: 2h, 3d, 2026-05-02').argParser(since),
  option('--until <when>', 'only before then').argParser(since),
  new Option('--hub [url]', 'of the hub').argParser(hubAddressIn),
]
const LIST = [option('--action <action>', 'only this, such as teams/publish'), ...RANGE, ...page]
const cursor = option('--cursor <number>', 'what comes after the entry with this cursor').argParser(numberOf)
const json = option('--json', 'print it as JSON')
const from = option('--from <hash>', 'a hash of an earlier export or verify that the chain must still contain')

/** The audit commands, each with an example. */
export function addAuditCommands(program: Command, act: Act): void {
  const commands = () => import('./audit.ts')
  const group = program
    .command('audit')
    .helpGroup(HELP_GROUP)
    .description(
      'list who did what at the hub, newest first; `audit list`, `export` and `verify` are about this home, or with --hub about the hub',
    )
    .allowExcessArguments()
  const audit = withOptions(group, [...LIST, json]).action(() => {
    if (group.args.length > 0) refuseWord(group, group.args[0]!)
    return act(async () => (await commands()).listAudit(group.optsWithGlobals()))
  })

  // Below a group that receives words that are not commands, a command would receive them, too.
  const below = (usage: string) => audit.command(usage).allowExcessArguments(false)
  const list = withOptions(below('list').description('list what was done, newest first'), [...LIST, json])
  list.action(() => act(async () => (await commands()).listHere(list.optsWithGlobals())))

  const exported = below('export').description('print the log with its hash chain, as lines of JSON')
  withOptions(exported, [...RANGE, cursor])
  exported.action(() => act(async () => (await commands()).exportAudit(exported.optsWithGlobals())))

  const verify = below('verify [file]').description(
    'check the hash chain of the log or of an exported file; exits with 1 if it is broken',
  )
  withOptions(verify, [...RANGE, from, json])
  verify.action(file => act(async () => (await commands()).verify(file, verify.optsWithGlobals())))

  const examples: [Command, string[]][] = [
    [group, ['audit --org acme --action teams/publish --since 7d', 'audit list', 'audit verify --hub']],
    [list, ['audit list --action settings/set --since 7d']],
    [exported, ['audit export > audit.jsonl', 'audit export --hub --org acme --cursor 4711']],
    [verify, ['audit verify', 'audit verify audit.jsonl']],
  ]
  for (const [command, calls] of examples) command.addHelpText('after', examplesText(calledAs(), calls))
}

function withOptions(command: Command, options: readonly Option[]): Command {
  for (const each of options) command.addOption(each)
  return command
}

function numberOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Expected the cursor of an entry.')
}
