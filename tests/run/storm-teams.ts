// Random teams for the fault storm: leaves without manners, and commands that leave links, pipes, files and folders where
// others have theirs. Nothing that a phase has on record is touched: that would be the agent's own doing.

import type { JsonObject } from '../../lib/json.ts'
import type { Random } from '../support/random.ts'
import { MANNERS } from './storm-agents.ts'

const SIZES = [-1, 20, 20, 60_000, 300_000] as const
/** Milliseconds that a leaf has. */
export const CLOCKS = [100, 300] as const

/** Where links lead to: anybody's own doing, and what only an engine that follows them would write into. */
export interface Outside {
  away: string
  trap: string
  /** Whether the disk is a small one, to be filled. */
  fill: boolean
}

/** Said by those who are told it; masked wherever it is recorded. */
const TOKEN = { name: 'token', type: 'string', secret: true }

/**
 * What is put into the way of the phase `later`, whose folder is `$CADRE_FILES/<later>`, before it starts. Where
 * it has a folder already, that is left alone.
 */
const obstacles = (later: string): readonly string[] => [
  `touch "$CADRE_FILES/${later}"`,
  `mkfifo "$CADRE_FILES/${later}"`,
  `ln -sn "$TRAP" "$CADRE_FILES/${later}"`,
  `ln -sn nowhere "$CADRE_FILES/${later}"`,
  `ln -sn . "$CADRE_FILES/${later}"`,
  `mkdir "$CADRE_FILES/${later}" && chmod 0 "$CADRE_FILES/${later}"`,
  `mkdir -p "$CADRE_FILES/${later}/x.txt/x"`,
  `mkdir -p "$CADRE_FILES/${later}/items.json"`,
  `mkdir "$CADRE_FILES/${later}" && ln -s "$TRAP/y" "$CADRE_FILES/${later}/x.txt"`,
  `mkdir "$CADRE_FILES/${later}" && mkfifo "$CADRE_FILES/${later}/x.txt" && ln -sn "$TRAP" "$CADRE_FILES/${later}/k1"`,
  `mkdir "$CADRE_FILES/${later}" && touch "$CADRE_FILES/${later}/k0" && chmod 500 "$CADRE_FILES/${later}"`,
]

/** What a command leaves in its own folder and as its own result. */
const REMAINS: readonly string[] = [
  'echo x > "$CADRE_OUT/x.txt"',
  'ln -s /etc/passwd "$CADRE_OUT/x.txt"',
  'ln -s "$AWAY/z" "$CADRE_OUT/x.txt"',
  'mkfifo "$CADRE_OUT/x.txt"',
  'mkdir "$CADRE_OUT/x.txt"',
  'echo x > "$CADRE_OUT/x.txt"; chmod 0 "$CADRE_OUT/x.txt"',
  'echo x > "$CADRE_OUT/x.txt"; chmod 0 "$CADRE_OUT"',
  'rm -r "$CADRE_OUT"',
  'rm -r "$CADRE_OUT"; ln -s "$AWAY" "$CADRE_OUT"',
  'rm -r "$CADRE_OUT"; touch "$CADRE_OUT"',
  'rm -r "$CADRE_OUT"; mkfifo "$CADRE_OUT"',
  'head -c 300000 /dev/zero > "$CADRE_OUT/x.txt"',
  'echo "{" > "$CADRE_RESULT"',
  'mkfifo "$CADRE_RESULT"',
  'mkdir "$CADRE_RESULT"',
  'ln -sn nowhere "$CADRE_RESULT"',
  'head -c 2000000 /dev/zero | tr "\\0" 1 > "$CADRE_RESULT"',
  'touch "$CADRE_RESULT"; chmod 0 "$CADRE_RESULT"',
  'mkfifo x.txt || true',
  'ln -sf "$AWAY/x" x.txt',
  'rm -f x.txt; echo x > x.txt; chmod 0 x.txt',
  'case "$PWD" in */work) rm -rf "$PWD";; esac',
  'case "$PWD" in */work) rm -rf "$PWD"; touch "$PWD";; esac',
  'trap "" TERM; sleep 1',
  'sleep 2 & sleep 0.02',
  'kill -9 $$',
  'printf "\\377\\376\\000no text\\n"',
  'exit 3',
]

const FILLERS: readonly string[] = [
  'head -c 90000000 /dev/zero > "$CADRE_OUT/x.txt"; rm -f "$CADRE_OUT/x.txt"',
  'head -c 90000000 /dev/zero > filler; rm -f filler',
  // Is ended before it tidies up.
  'head -c 90000000 /dev/zero > filler; sleep 4; rm -f filler',
]

/** A team and the teams below it, as files by path. Its input is the number `n`. */
export function wildTeam(
  random: Random,
  depth: number,
  outside: Outside,
  told = false,
  folder = '',
): Record<string, string> {
  const files: Record<string, string> = {}
  const size = 1 + random.below(5)
  /** By phase: the one that puts something into its way, if any, and so comes before it. */
  const before: number[][] = Array.from({ length: size }, () => [])
  const phases = Array.from({ length: size }, (_, position) => {
    const name = `p${position}`
    const kind = random.of(
      depth > 0 ? ['wild', 'exec', 'exec', 'team', 'map', 'map', 'gate', 'once'] : ['wild', 'exec', 'exec', 'gate'],
    )
    if (kind === 'team' || kind === 'map') {
      Object.assign(files, wildTeam(random, depth - 1, outside, told, `${folder}${name}/`))
    }
    const later = position + 1 + random.below(size - position)
    // Two would get into each other's way: the second would write through a link that the first has put there.
    const obstructs = kind === 'exec' && before[later]?.length === 0 && random.once(2)
    if (obstructs) before[later]!.push(position)
    const others = Array.from({ length: position }, (_, n) => n).filter(n => !before[position]!.includes(n))
    return {
      name,
      depends_on: [...before[position]!, ...others.filter(() => random.once(2))].map(on => `p${on}`),
      on_failure: random.of(['fail', 'continue', 'continue', 'escalate']),
      ...(random.once(5) && { always: true }),
      ...phaseOf(random, kind, name, obstructs ? `p${later}` : null, outside, told),
    }
  })
  const listener = {
    name: 'tell',
    agent: 'wild',
    notify: { on_fail: { manner: random.of(MANNERS.slice(4)) }, on_start: {} },
  }
  files[`${folder}team.yml`] = JSON.stringify({
    name: '@local/wild',
    version: '1.0.0',
    inputs: [{ name: 'n', type: 'number', default: 0 }, ...(told ? [TOKEN] : [])],
    outputs: outputsOf(random, size),
    ...(random.once(5) && { timeout: `${200 + random.below(2_000)}ms` }),
    phases: random.once(3) ? [...phases, listener] : phases,
  })
  return files
}

function phaseOf(
  random: Random,
  kind: string,
  name: string,
  later: string | null,
  outside: Outside,
  told: boolean,
): JsonObject {
  const token = told ? { token: '{{ inputs.token }}' } : {}
  const clock = random.of(CLOCKS)
  switch (kind) {
    case 'wild':
    case 'once':
      return {
        agent: 'wild',
        action: kind === 'wild' ? 'read' : 'once',
        [kind === 'wild' ? 'sources' : 'target_entries']: [
          { name: 'x.txt', manner: random.of(MANNERS), bytes: random.of(SIZES), clock, token: null, ...token },
        ],
        retry: { attempts: 1 + random.below(3), backoff: `${1 + random.below(50)}ms` },
        timeout: `${clock}ms`,
      }
    case 'exec':
      return {
        agent: 'exec',
        env: { AWAY: outside.away, TRAP: outside.trap },
        commands: [
          ...(later ? [{ name: 'obstacle', run: random.of(obstacles(later)) }] : []),
          { name: 'remains', run: random.of(outside.fill && random.once(10) ? FILLERS : REMAINS) },
        ],
        // A pipe that nobody reads is waited for.
        timeout: random.of(['150ms', '3s', '3s']),
      }
    case 'gate':
      return {
        type: 'gate',
        ...(random.once(2) && {
          commands: [{ name: 'c', run: random.of(REMAINS), env: { AWAY: outside.away }, timeout: '3s' }],
        }),
        review: { prompt: 'Go on?', reviewers: ['any'], ...(random.once(3) && { timeout: '40ms' }) },
      }
    case 'team':
      return { type: 'team', team: `./${name}`, inputs: { n: '{{ inputs.n }}', ...token } }
    default:
      return {
        type: 'map',
        team: `./${name}`,
        items: Array.from({ length: random.below(4) }, (_, n) => n),
        key: 'k{{ item }}',
        inputs: { n: '{{ item }}', ...token },
        on_item_failure: random.of(['stop', 'continue']),
        concurrency: 1 + random.below(3),
      }
  }
}

/** Files that may be there, or something else in their place, or nothing. */
function outputsOf(random: Random, size: number): JsonObject[] {
  const value = (position: number) =>
    random.of([
      `{{ phases.p${position}.files.size() == 0 ? dyn(null) : dyn(phases.p${position}.files[0].path) }}`,
      `{{ 'files/p${position}/x' + '.txt' }}`,
      "{{ 'x' + '.txt' }}",
      "{{ 'fill' + 'er' }}",
    ])
  return Array.from({ length: size }, (_, position) => position).flatMap(position =>
    random.once(3) ? [{ name: `doc${position}`, type: 'file', value: value(position) }] : [],
  )
}
