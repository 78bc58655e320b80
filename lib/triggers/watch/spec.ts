// What a watch says: which files of a folder count, and when one of them is an occasion. Pure.

import { A_DURATION, formatDuration, parseDuration } from '../../duration.ts'
import { patternProblem } from './match.ts'
import { WATCH_DEFAULTS, WATCHED, type Watched } from './words.ts'

/** A checked watch. Durations are texts, as people wrote them. */
export interface WatchSpec {
  /** An absolute path, or one that begins with `~/`. */
  folder: string
  match: string[]
  ignore: string[]
  /** How many levels of folders count; 1: the folder alone. */
  depth: number
  on: Watched[]
  settle: string
  batch: string | null
  poll: string
  initial: boolean
  identity: 'stat' | 'sha256'
  claim: boolean
}

export type WatchFields = { [name in keyof WatchSpec]?: unknown }

interface Problem {
  path: string
  message: string
}

const MOST_DEPTH = 32
const MOST_PATTERNS = 100

const DURATIONS = {
  settle: [0, '1h'],
  batch: [1, '1h'],
  poll: [100, '24h'],
} as const

/** The watch with its defaults, or everything that is wrong with it, with pointers into a flat body. */
export function checkWatch(
  fields: WatchFields,
): { spec: WatchSpec; problems?: never } | { spec?: never; problems: Problem[] } {
  const spec = { ...WATCH_DEFAULTS, ...fields } as WatchSpec
  const problems = [
    ...folderProblems(spec.folder),
    ...patternProblems('match', spec.match),
    ...patternProblems('ignore', spec.ignore),
    ...(Number.isInteger(spec.depth) && spec.depth >= 1 && spec.depth <= MOST_DEPTH
      ? []
      : [{ path: '/depth', message: `must be a whole number from 1 to ${MOST_DEPTH}` }]),
    ...onProblems(spec),
    ...(['settle', 'batch', 'poll'] as const).flatMap(name => durationProblems(name, spec[name])),
  ]
  if (problems.length > 0) return { problems }
  return { spec: { ...spec, on: WATCHED.filter(each => spec.on.includes(each)) } }
}

function folderProblems(folder: unknown): Problem[] {
  const path = '/folder'
  if (folder === undefined) return [{ path, message: 'is required: the folder whose files it watches' }]
  if (typeof folder === 'string' && /^(\/|~(\/|$))/.test(folder)) return []
  return [{ path, message: 'must be an absolute path, or begin with ~/' }]
}

function patternProblems(name: 'match' | 'ignore', patterns: readonly string[]): Problem[] {
  if (patterns.length > MOST_PATTERNS) return [{ path: `/${name}`, message: `has more than ${MOST_PATTERNS} patterns` }]
  if (name === 'match' && patterns.length === 0) return [{ path: '/match', message: 'needs a pattern, such as *.pdf' }]
  return patterns.flatMap((pattern, at) => {
    const message = patternProblem(pattern)
    return message === null ? [] : [{ path: `/${name}/${at}`, message }]
  })
}

function onProblems({ on, claim }: WatchSpec): Problem[] {
  const path = '/on'
  const known = on.filter(each => WATCHED.includes(each))
  if (known.length !== on.length || on.length === 0) {
    return [{ path, message: `expected some of ${WATCHED.join(', ')}` }]
  }
  if (!claim || !on.includes('removed')) return []
  return [{ path, message: 'a file that was removed cannot be claimed: leave out removed, or claim' }]
}

function durationProblems(name: keyof typeof DURATIONS, text: string | null): Problem[] {
  if (text === null && name === 'batch') return []
  const [least, most] = DURATIONS[name]
  const ms = parseDuration(String(text))
  const path = `/${name}`
  if (ms === null) return [{ path, message: `must be ${A_DURATION}` }]
  if (ms >= least && ms <= parseDuration(most)!) return []
  return [{ path, message: `must be from ${formatDuration(least)} to ${most}` }]
}

const EVENTS = { added: 'comes', changed: 'changes', removed: 'is removed' } as const

/** What it does, for people. */
export function watchWords({ folder, match, depth, on, batch, claim }: WatchSpec): string {
  const listed = (words: readonly string[]) => new Intl.ListFormat('en', { type: 'disjunction' }).format(words)
  const below = depth === 1 ? '' : `, up to ${depth} folders deep`
  const together = batch === null ? '' : `, and with it all that follow within ${batch}`
  const moved = claim ? ', and is moved away for its run' : ''
  return `each file ${listed(match)} that ${listed(on.map(each => EVENTS[each]))} in ${folder}${below}${moved}${together}`
}
