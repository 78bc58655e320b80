// Hostile texts: what another program may send where a name, an id or a text is expected. They come from a seeded
// generator, so that a failing test can be repeated. Each sink (file name, command line, SQL, terminal, HTML, log) is
// tested with the same texts.

import type { Random } from './random.ts'

/** What ends a line for some reader: LF, CR, both, VT, FF, NEL and the separators of Unicode. */
export const LINE_ENDS = ['\n', '\r', '\r\n', '\v', '\f', '\x85', '\u2028', '\u2029'] as const

/** Controls of C0, DEL and C1, among them the ones that begin a terminal's commands. */
export const CONTROLS = ['\0', '\x01', '\x07', '\b', '\t', '\x1b', '\x7f', '\x80', '\x9b', '\x9d', '\x9c'] as const

/** Characters that turn the direction of a text, or that are not seen. */
export const INVISIBLE = [
  ...['\u200b', '\u200c', '\u200d', '\u200e', '\u200f', '\u2060', '\ufeff', '\u00ad', '\u061c', '\u180e'],
  ...['\u202a', '\u202b', '\u202c', '\u202d', '\u202e', '\u2066', '\u2067', '\u2068', '\u2069', '\u{e0041}'],
] as const

/** Texts that are a way to another place where a name becomes a path. */
export const PATHS = [
  ...[
    '.',
    '..',
    '/',
    '//',
    '../',
    '../victim',
    '../../victim',
    '../../../../../../tmp',
    './../victim',
    'a/../../victim',
  ],
  ...['/etc/passwd', '/victim', '~', '~/.ssh', '..\\victim', '..%2fvictim', '%2e%2e/victim', '..\u2215victim'],
  ...[
    '\uff0e\uff0e/victim',
    'C:\\victim',
    '\\\\host\\share',
    'file:///etc/passwd',
    '.git',
    '.ssh/id',
    'a/',
    'CON',
    '-',
  ],
] as const

/** Texts that are words of the language of a sink: shells, SQL, sftp, git, terminals, HTML, JSON, templates, logs. */
export const WORDS = [
  ...['$(touch victim)', '`touch victim`', '; touch victim', '| touch victim', '&& touch victim', '!touch victim'],
  ...['-rf', '--upload-pack=touch victim', '-oProxyCommand=touch victim', '--', '*', '?', '$HOME', '${HOME}', '%s%n'],
  ...["'", '"', '\\', "' OR '1'='1", "'; DROP TABLE runs; --", '$a$b$', '/* /* */', '"; COMMIT; --', "\\'", '""'],
  ...[
    '\x1b[2J',
    '\x1b]0;victim\x07',
    '\x1b]52;c;dmljdGlt\x07',
    '\x9b2J',
    '\x1bP+q\x1b\\',
    '\x1b[1A\x1b[2K',
    '\r\x1b[K',
  ],
  ...['<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', '</title>', '&lt;', 'javascript:alert(1)', '<!--'],
  ...['{"a":1}', '\\u0000', '\\n', 'null', '__proto__', 'constructor', 'toString', 'hasOwnProperty', '{{ 1 }}', '{{{{'],
  ...['core.worktree=/victim', '@{u}', 'HEAD', 'refs/heads/../../victim', 'ext::sh -c victim', 'Bcc: victim@victim'],
] as const

/** Texts that are not well-formed, or not the same after they were normalised, folded or written as UTF-8. */
const ODD = [
  '\ud800',
  '\udfff',
  'a\u0301',
  '\u00e1',
  'ﬁ',
  'İ',
  'ß',
  'ſ',
  '\u{1f469}\u200d\u{1f680}',
  'é'.repeat(130),
] as const

/** Lengths that are one too many for something: a file name, a path, a column, a body. */
const LONG = [64, 65, 255, 256, 4_096, 65_537] as const

/** One hostile text. `longest`: the maximum number of UTF-16 units. */
export function hostileText(random: Random, longest = 70_000): string {
  return made(random).slice(0, longest)
}

function made(random: Random): string {
  if (random.once(16)) return ''
  if (random.once(16)) return random.of(['a', '/', '../', '\u202e', '\n', "'", 'é']).repeat(random.of(LONG))
  const pieces = Array.from({ length: 1 + random.below(5) }, () => piece(random))
  return pieces.join('')
}

function piece(random: Random): string {
  const kinds = [LINE_ENDS, CONTROLS, INVISIBLE, PATHS, PATHS, WORDS, WORDS, ODD] as const
  if (random.once(4)) return harmless(random)
  if (random.once(16)) return String.fromCodePoint(random.below(0x3000))
  return random.of(random.of(kinds) as readonly string[])
}

/** A name as it is expected, so that what is hostile also stands in the middle and at the end of one. */
function harmless(random: Random): string {
  return random.of(['run', 'victim', '@local/team', '1.0.0', 'b3c1f0e4-8f6a-4c58-9d3a-0c2f1f1f4a11', 'files/a/b.txt'])
}

/** `count` hostile texts: each of the lists above alone, then random ones. */
export function hostileTexts(random: Random, count: number): string[] {
  const each: readonly string[] = [...LINE_ENDS, ...CONTROLS, ...INVISIBLE, ...PATHS, ...WORDS, ...ODD]
  const more = Array.from({ length: Math.max(0, count - each.length) }, () => hostileText(random))
  return [...each, ...more].slice(0, Math.max(count, each.length))
}

/** Any JSON value in which the texts, and the names of fields, are hostile. */
export function hostileJson(random: Random, depth = 3): unknown {
  const below = () => hostileJson(random, depth - 1)
  const size = random.below(4)
  switch (random.below(depth > 0 ? 7 : 5)) {
    case 0:
      return null
    case 1:
      return random.of([true, 0, -1, 1e308, Number.MAX_SAFE_INTEGER + 1, 0.1])
    case 5:
      return Array.from({ length: size }, below)
    case 6:
      return Object.fromEntries(Array.from({ length: size }, () => [hostileText(random, 300), below()]))
    default:
      return hostileText(random)
  }
}
