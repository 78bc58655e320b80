// The options of the commands about triggers.

import { HOOK_SCHEMES } from '../../../triggers/hook/schemes.ts'
import { WATCH_IDENTITIES, WATCHED } from '../../../triggers/watch/words.ts'
import { CHAIN_ENDS, OVERLAPS } from '../../../wire/records/trigger-words.ts'
import { option } from '../kit/command-table.ts'
import { atMost, collect, count, offset, runName } from '../kit/options.ts'
import { sinceOf as since } from '../kit/since.ts'

export const CATCH_UPS = ['none', 'last', 'all']
export const limit = (shown: number) => option('--limit <number>', `how many, from 1 to 100 (${shown})`, count)

/** When a schedule is due, in options of `add` and `update`. */
export const SCHEDULE = [
  option('--cron <fields>', 'minute, hour, day, month and weekday, such as "0 6 * * 1-5"; or @daily'),
  option('--every <duration>', 'a distance in whole minutes, such as 90m'),
  option('--from <time>', 'when --every begins, with an offset (default: now)'),
  option('--at <time>', 'one point in time, such as 2026-12-01T09:00'),
  option('--tz <zone>', 'the zone of the times, such as Europe/Berlin (default: that of this machine)'),
  option('--catch-up <which>', 'which slots start that were due while nothing served (none)').choices(CATCH_UPS),
  option('--window <duration>', 'how late a slot may be that is caught up (24h)'),
  option('--max <number>', 'how many slots --catch-up all starts (10)', count),
  option('--late-after <duration>', 'how late a slot may start without --catch-up (5m)'),
  option('--jitter <duration>', 'spread the starts over so long a time'),
]

/** Who sends to a hook, and what is kept, in options of `add` and `update`. */
export const HOOK = [
  option('--scheme <name>', 'how the sender signs').choices(HOOK_SCHEMES),
  option('--dedup <what>', 'what makes deliveries the same: none, body, or a template (the id that the sender gives)'),
  option('--header <name>', 'hmac: the header of the signature; bearer: that of the secret'),
  option('--algorithm <name>', 'hmac: the hash (sha256)').choices(['sha256', 'sha512']),
  option('--encoding <name>', 'hmac: how the header writes the digest (hex)').choices(['hex', 'base64']),
  option('--prefix <text>', 'hmac: what stands before the digest, such as sha256='),
  option('--payload <template>', 'hmac: what is signed, of {timestamp}, {id} and {body} ({body})'),
  option('--key <form>', 'hmac: how the secret writes the key (text)').choices(['text', 'hex', 'base64']),
  option('--timestamp-header <name>', 'hmac: the header of the time that is signed'),
  option('--unit <unit>', 'hmac: the unit of that time (s)').choices(['s', 'ms']),
  option('--id-header <name>', 'hmac and bearer: the header of the id of a delivery'),
  option('--tolerance <duration>', 'how far the signed time may be from now (5m)'),
  option('--max-bytes <number>', 'the largest body (1048576)', offset),
  option('--keep-days <number>', 'how long cadre recognises a delivery that comes again (30)', offset),
  option('--keep-body <days>', 'how long cadre keeps bodies; 0: never (7)', offset),
  option('--reply <form>', 'how cadre answers the sender (json; slack: empty)').choices(['json', 'empty']),
]

const onOption = (words: string) => option('--on <what>', words, text => text.split(','))

/** Which runs a chain follows, in options of `add` and `update`. */
export const CHAIN = [
  option('--after <team>', 'the team whose runs the chain follows: @scope/name, or a name in any scope'),
  onOption(`how these runs must end, with commas: ${CHAIN_ENDS.join(', ')} (completed)`),
  option('--again', 'follow each attempt of a resumed run'),
]

/** Which files a watch looks at, in options of `add` and `update`. */
export const WATCH = [
  option('--folder <path>', 'the folder to watch'),
  option('--match <pattern>', 'which files count, such as "*.pdf"; repeat it for more (*)', collect),
  option('--ignore <pattern>', 'which files and folders do not count; repeat it for more', collect),
  option('--depth <number>', 'how many levels of folders count; 1: the folder alone (1)', count),
  onOption(`what counts, with commas: ${WATCHED.join(', ')} (added,changed)`),
  option('--settle <duration>', 'for how long a file stays the same before it counts (2s)'),
  option('--batch <duration>', 'one run for all files that come within so long a time'),
  option('--poll <duration>', 'how often to look where the system reports no changes (30s)'),
  option('--initial', 'also count files that are there already'),
  option(
    '--identity <way>',
    'what tells versions of a file apart: size, time and inode, or its content (stat)',
  ).choices(WATCH_IDENTITIES),
  option('--claim', 'move files away before their run begins, so that no other run gets them'),
]

/** The options of every kind, for `update`; where two kinds have the same one, in words for both. */
export const EVERY = [
  ...[...SCHEDULE, ...HOOK, ...CHAIN, ...WATCH].filter(({ long }) => long !== '--on'),
  onOption('chains: how runs must end; watches: what must happen to a file; with commas'),
]

export const SECRETS = [
  option('--add-secret <secret>', 'hooks: add a secret that the sender may use: - or @FILE'),
  option('--expire-secret <id>', 'hooks: the id of a secret that the sender may no longer use'),
]

/** What every trigger may have. */
export const COMMON = [
  option('-i, --input <name=value>', "an input; a value with {{ }} is a template, such as '{{ slot }}'", collect),
  option('--inputs <file>', 'a file with the inputs as a JSON object'),
  option('--when <expression>', 'start only if this CEL expression is true'),
  option('--overlap <way>', 'what happens while the run before goes on (schedules: skip; others: allow)').choices(
    OVERLAPS,
  ),
  option('--queue-max <number>', 'how many wait with --overlap queue (1)', offset),
  option('--at-most <count/duration>', 'how many runs may start within a time, such as 3/1h', atMost),
  option(
    '--workspace <folder>',
    'where the runs work: a folder, or the name of a workspace (default: the folder of the team)',
  ),
  option('--env <name>', 'the environment of settings.yml for the runs, such as staging'),
  option('--run-name <name>', 'a name for the runs, which lists show', text => (text === '' ? text : runName(text))),
]

export const SLOTS = [
  limit(5),
  option('--after <when>', 'only slots after this time (now)', since),
  option('--until <when>', 'only slots up to this time', since),
]
export const DELIVERY = [
  option('--body <file>', 'hooks: the body of a delivery; - is stdin'),
  option('--header <name: value>', 'hooks: a header of the delivery', collect),
]
