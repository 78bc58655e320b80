// The commands about what starts runs by itself. Those of one kind are the same as those of all, and `add`.

import type { Option } from 'commander'
import { FIRING_REASONS, FIRING_STATES, TRIGGER_KINDS, type TriggerKind } from '../../../wire/records/trigger-words.ts'
import { type Entry, json, option } from '../kit/command-table.ts'
import { offset } from '../kit/options.ts'
import { sinceOf as since } from '../kit/since.ts'
import { CATCH_UPS, CHAIN, COMMON, DELIVERY, EVERY, HOOK, limit, SCHEDULE, SECRETS, SLOTS, WATCH } from './options.ts'

const list = () => import('./list.ts')
const change = () => import('./change.ts')
const start = () => import('./start.ts')

const record = option('--json', 'print the trigger as JSON')
/** Where the trigger is. */
const place = [
  option('--realm <realm>', 'in a realm of the hub: its slug, name or id'),
  option('--hub <url>', 'the address of the hub (CADRE_HUB_URL, else the one of login)'),
]
const firing = option('--json', 'print the firing as JSON')
const skipped = option('--offset <number>', 'how many of the first to skip (0)', offset)
const named = option('--name <name>', 'the name of the trigger (default: that of the team)')

const addSchedule: Entry = {
  usage: 'add <team>',
  does: 'start a team at the times of a clock',
  more: 'Give one of --cron, --every and --at. Only a daemon that runs (serve) starts the runs.',
  examples: [
    ['./digest --cron "0 6 * * 1-5" --tz Europe/Berlin'],
    [
      "@acme/report --cron @hourly --catch-up last -i day='{{ slot }}'",
      'a late slot starts, too; the run knows its slot',
    ],
    ['./sync --every 90m --overlap queue', 'a slot waits until the run before has ended'],
    ['./launch --at 2026-12-01T09:00 --tz Europe/Berlin', 'once'],
  ],
  options: [named, ...SCHEDULE, ...COMMON, ...place, record],
  run: async (options, team: string) => (await change()).addTrigger('schedule', team, options),
}

const addHook: Entry = {
  usage: 'add <team>',
  does: 'start a team with each delivery of another program',
  more: 'A daemon takes deliveries while it runs (serve), from this machine only. Give the secret on stdin or typed (--secret -), or in a file (--secret @FILE). Inputs and --when may use body, headers, query and delivery.',
  examples: [
    ["./triage --scheme github --secret - --when 'body.action == \"opened\"' -i issue='{{ body.issue.number }}'"],
    ['./deploy --scheme bearer --secret @token.txt', 'a program of yours, which sends the secret as Bearer'],
    ['./build --scheme hmac --header X-Signature --prefix sha256= --dedup body --secret -'],
  ],
  options: [
    named,
    option('--secret <secret>', 'what the sender and cadre share: - or @FILE'),
    ...HOOK,
    ...COMMON,
    ...place,
    record,
  ],
  run: async (options, team: string) => (await change()).addTrigger('hook', team, options),
}

const addChain: Entry = {
  usage: 'add <team>',
  does: 'start a team when a run of another team ends',
  more: 'A chain follows runs that a person or a trigger started, and not their sub-runs. Inputs and --when may use run, such as run.outputs.version and run.state.',
  examples: [
    ["./deploy --after @acme/build -i version='{{ run.outputs.version }}'"],
    ["./report --after build --on failed,cancelled -i text='{{ run.team }}: {{ run.state }}'"],
  ],
  options: [named, ...CHAIN, ...COMMON, ...place, record],
  run: async (options, team: string) => (await change()).addTrigger('chain', team, options),
}

const addWatch: Entry = {
  usage: 'add <team>',
  does: 'start a team with files that come or change in a folder',
  more: 'A daemon looks at the folder while it runs (serve), and at its next start finds the files that came meanwhile. A file counts when it has not changed for --settle. Inputs and --when may use files, such as files[0].path, name, bytes and mtime.',
  examples: [
    ["./invoice --folder ~/in --match '*.pdf' -i file='{{ files[0].path }}'"],
    ["./import --folder /srv/drop --match '*.csv' --batch 10s --claim", 'one run for files that come together'],
    ["./index --folder notes --depth 5 --on added,changed,removed -i list='{{ files }}'"],
  ],
  options: [named, ...WATCH, ...COMMON, record],
  run: async (options, team: string) => (await change()).addTrigger('watch', team, options),
}

/** What the options of a kind are, for `update`. */
const OPTIONS: Readonly<Partial<Record<TriggerKind, readonly Option[]>>> = {
  ...{ schedule: SCHEDULE, hook: HOOK, watch: WATCH, chain: CHAIN },
}

const UPDATES: Readonly<Partial<Record<TriggerKind, Entry['examples']>>> = {
  schedule: [['nightly --cron "30 6 * * 1-5"'], ["nightly --name weekdays --when ''"]],
  hook: [['opened --add-secret -', 'before the sender gets another one'], ["opened --when ''"]],
  watch: [["invoice --match '*.pdf' --match '*.tiff'"], ["invoice --settle 5s --batch ''"]],
  chain: [['deploy --on completed,failed'], ["deploy --name rollout --when ''"]],
}

const backfill: Entry = {
  usage: 'backfill <trigger>',
  does: 'start the runs of times that were missed, one after the other',
  more: 'A slot is a time at which a run was due. Slots that have a run, or were skipped for another reason, stay as they are. A daemon that runs (serve), or the hub, starts the others.',
  examples: [
    ['nightly --from 2026-11-01 --to 2026-11-08 --dry-run', 'print the slots first'],
    ['nightly --from 7d --most 3', 'the oldest three of the last seven days'],
  ],
  options: [
    option('--from <when>', 'slots from this time on: 3d, 2026-11-01', since),
    option('--to <when>', 'slots before this time (now)', since),
    option('--most <number>', 'how many, the oldest first (100)', offset),
    option('--dry-run', 'print the slots, and start nothing'),
    option('--yes', 'also what may have started where this home, or the hub, was copied from'),
    ...place,
    json,
  ],
  run: async (options, name: string) => (await start()).backfillTrigger(name, options),
}

const PREVIEWS: Readonly<Partial<Record<TriggerKind, string>>> = {
  ...{ hook: 'print what the hook would do with a delivery', watch: 'print which files the watch would report now' },
}

/** What is done with triggers of any kind. */
const below = (kind?: TriggerKind): Entry[] => [
  {
    usage: 'list',
    does: kind ? `list the ${kind}s, and what they did last` : 'list what starts runs by itself',
    isDefault: true,
    examples: [[''], ['--json']],
    options: [
      ...(kind ? [] : [option('--kind <kind>', 'only triggers of this kind').choices(TRIGGER_KINDS)]),
      limit(100),
      skipped,
      ...place,
      json,
    ],
    run: async options => (await list()).listTriggers(kind ?? options.kind, options),
  },
  {
    usage: 'show <trigger>',
    does: 'show what a trigger starts, when, and what it did last',
    examples: [['nightly']],
    options: [...place, record],
    run: async (options, name: string) => (await list()).showTrigger(name, options),
  },
  {
    usage: 'preview <trigger>',
    does: PREVIEWS[kind ?? 'chain'] ?? 'print when a trigger is due, or what it would do',
    examples:
      kind === 'hook'
        ? [['opened --body delivery.json']]
        : kind === 'watch'
          ? [['invoice']]
          : [['nightly'], ['nightly --limit 100 --after 2027-03-01']],
    options: [
      ...(kind === 'hook' ? [] : kind === 'watch' ? [limit(5)] : SLOTS),
      ...(kind === undefined || kind === 'hook' ? DELIVERY : []),
      ...place,
      json,
    ],
    run: async (options, name: string) => (await list()).previewTrigger(name, options),
  },
  {
    usage: 'firings <trigger>',
    does: 'list what a trigger started, and why it started nothing',
    examples: [['nightly'], ['nightly --state skipped --since 7d'], ['nightly --reason missed']],
    options: [
      option('--state <state>', 'only firings in this state').choices(FIRING_STATES),
      option('--reason <reason>', 'only firings that started nothing for this reason').choices(FIRING_REASONS),
      option('--since <when>', 'only occasions since then: 2h, 3d, 2026-05-02', since),
      option('--until <when>', 'only occasions before then', since),
      ...(kind === undefined || kind === 'hook'
        ? [option('--body', 'hooks: print what came, with secrets masked')]
        : []),
      limit(20),
      skipped,
      ...place,
      json,
    ],
    run: async (options, name: string) => (await list()).listFirings(name, options),
  },
  {
    usage: 'run <trigger>',
    does: 'start a run of a trigger now',
    more: 'Without a daemon, the command executes the run itself and follows it. If no run starts, the exit code is 2.',
    examples: [['nightly'], ['nightly --force', 'also while another run of it has not ended']],
    options: [option('--force', 'start the run whatever --overlap and --at-most say'), ...place, firing],
    run: async (options, name: string) => (await start()).runTrigger(name, options),
  },
  {
    usage: 'refire <firing>',
    does: 'start the run of an occasion that started none',
    more: '<firing> is an id that `firings` lists, or its first characters (six or more).',
    examples: [['01a1fd72'], ['01a1fd72 --again', 'a second run of an occasion that had one']],
    options: [option('--again', 'start a second run of an occasion that had one'), ...place, firing],
    run: async (options, id: string) => (await start()).refireFiring(id, options),
  },
  ...(kind === undefined || kind === 'schedule' ? [backfill] : []),
  {
    usage: 'pause <trigger>',
    does: 'stop a trigger from starting runs until you resume it',
    examples: [['nightly --reason "the wiki is being moved"']],
    options: [option('--reason <text>', 'why, for people who look at the trigger'), ...place, record],
    run: async (options, name: string) => (await change()).pauseTrigger(name, options),
  },
  {
    usage: 'resume <trigger>',
    does: 'let a paused trigger start runs again, from now',
    examples: [['nightly'], ['nightly --catch-up last', 'also starts the newest slot of the pause']],
    options: [
      option('--catch-up <which>', 'which slots of the pause start (none)').choices(CATCH_UPS),
      ...place,
      record,
    ],
    run: async (options, name: string) => (await change()).resumeTrigger(name, options),
  },
  {
    usage: 'enable <trigger> [name]',
    does: 'turn a trigger on again, from now; or one that a team.yml declares',
    more: 'With one word: the name of a trigger. With two words: a team, and the name of a trigger in its team.yml, which cadre takes as the file says it now.',
    examples: [
      ['nightly'],
      ['./digest nightly', 'declared in digest/team.yml'],
      ['@acme/triage opened --realm prod --secret -', 'a hook in a realm'],
    ],
    options: [option('--secret <secret>', 'the secret of a hook that is new here: - or @FILE'), ...place, record],
    run: async (options, trigger: string, name?: string) => (await change()).enableTrigger(trigger, name, options),
  },
  {
    usage: 'disable <trigger>',
    does: 'turn a trigger off',
    more: 'A paused trigger records what passes; a disabled one does not.',
    examples: [['nightly']],
    options: [...place, record],
    run: async (options, name: string) => (await change()).disableTrigger(name, options),
  },
  {
    usage: 'update <trigger>',
    does: 'change a trigger',
    more: "An option that you leave out stays as it was. An empty text removes it, such as --when ''. The new rule counts from now on; runs that have started go on.",
    examples: UPDATES[kind ?? 'schedule'] ?? [],
    options: [
      option('--name <name>', 'a new name'),
      option('--team <team>', 'another team: a folder, a team.yml, or @scope/name'),
      option('--keep', 'keep the trigger as it is, although its team.yml says something else'),
      ...(kind ? (OPTIONS[kind] ?? []) : EVERY),
      ...(kind === undefined || kind === 'hook' ? SECRETS : []),
      ...COMMON,
      ...place,
      record,
    ],
    run: async (options, name: string) => (await change()).updateTrigger(name, options),
  },
  {
    usage: 'take <trigger>',
    does: 'become the owner of a trigger of a realm',
    more: 'A trigger starts its runs with the rights that its owner has at that moment.',
    examples: [['nightly --realm prod']],
    options: [...place, record],
    run: async (options, name: string) => (await change()).takeTrigger(name, options),
  },
  {
    usage: 'remove <trigger>',
    does: 'remove a trigger; its runs stay',
    examples: [['nightly']],
    options: [...place, record],
    run: async (options, name: string) => (await change()).removeTrigger(name, options),
  },
]

export const TRIGGER_COMMANDS: readonly Entry[] = [
  {
    usage: 'schedules',
    does: 'start teams at the times of a clock',
    examples: [[''], ['show digest']],
    below: [addSchedule, ...below('schedule')],
  },
  {
    usage: 'hooks',
    does: 'start teams with what other programs send',
    examples: [[''], ['show opened']],
    below: [addHook, ...below('hook')],
  },
  {
    usage: 'watches',
    does: 'start teams with files that come or change',
    examples: [[''], ['show invoice']],
    below: [addWatch, ...below('watch')],
  },
  {
    usage: 'chains',
    does: 'start teams when runs of others end',
    examples: [[''], ['show deploy']],
    below: [addChain, ...below('chain')],
  },
  {
    usage: 'triggers',
    does: 'list and change everything that starts runs by itself',
    examples: [[''], ['show nightly'], ['pause nightly']],
    below: below(),
  },
]
