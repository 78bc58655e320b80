// The commands about audit logs: alone it lists that of the hub, and its own commands are about the home unless --hub
// says otherwise.

import { InvalidArgumentError } from 'commander'
import { type Entry, ofHub, option } from '../kit/command-table.ts'
import { sinceOf as since } from '../kit/since.ts'
import { page } from './entry.ts'

const RANGE = [
  option('--org <org>', 'only of this org of a hub: its slug or number'),
  option('--since <when>', 'only entries since then: 2h, 3d, 2026-05-02', since),
  option('--until <when>', 'only entries before then: 2h, 3d, 2026-05-02', since),
  ofHub('the log of the hub'),
]
const LIST = [option('--action <action>', 'only this action, such as teams/publish'), ...RANGE, ...page]
const cursor = option('--cursor <number>', 'only entries after the one with this cursor', numberOf)
const json = option('--json', 'print JSON')
const from = option('--from <hash>', 'a hash of an earlier export or verify that the chain must still contain')

const audit = () => import('./audit.ts')

export const AUDIT: Entry = {
  usage: 'audit',
  does: 'list who did what at the hub, newest first',
  more: '`audit list`, `audit export` and `audit verify` are about this home, or with --hub about the hub.',
  examples: [['--org acme --action teams/publish --since 7d'], ['list'], ['verify --hub']],
  options: [...LIST, json],
  run: async options => (await audit()).listAudit(options),
  below: [
    {
      usage: 'list',
      does: 'list who did what on this machine, newest first',
      examples: [['--action settings/set --since 7d']],
      options: [...LIST, json],
      run: async options => (await audit()).listHere(options),
    },
    {
      usage: 'export',
      does: 'print the audit log with its hash chain, as lines of JSON',
      examples: [['> audit.jsonl'], ['--hub --org acme --cursor 4711']],
      options: [...RANGE, cursor],
      run: async options => (await audit()).exportAudit(options),
    },
    {
      usage: 'verify [file]',
      does: 'check the hash chain of the audit log, or of an exported file',
      more: 'The command exits with 1 if the chain is broken.',
      examples: [[''], ['audit.jsonl']],
      options: [...RANGE, from, json],
      run: async (options, file?: string) => (await audit()).verify(file, options),
    },
  ],
}

function numberOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Expected the cursor of an entry.')
}
