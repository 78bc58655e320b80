// Which files of a folder a watch looks at. Pure: paths are relative to the folder, with `/` between their parts.

import { Glob } from 'bun'

/** Where files lie that runs have claimed. Nothing in it is ever an occasion. */
export const CLAIMED = '.cadre-claimed'

/** Hidden files, and what editors and browsers write for a moment. `other`: a name of the same form that is none of these. */
const PASSING: readonly { is: RegExp; other: (part: string) => string }[] = [
  { is: /^\./, other: part => `x${part}` },
  { is: /~$/, other: part => `${part}x` },
  { is: /\.(tmp|part|crdownload)$/, other: part => `${part}x` },
]

export interface Matcher {
  /** Whether a file counts. */
  takes(path: string): boolean
  /** Whether files in this folder may count. */
  enters(path: string): boolean
}

/** A pattern without `/` is one of names, in whatever folder; another one is one of paths from the watched folder on. */
export function matcherOf({ match, ignore }: { match: readonly string[]; ignore: readonly string[] }): Matcher {
  const wanted = match.map(globOf)
  const unwanted = ignore.map(globOf)
  const seesHidden = match.some(pattern => /(^|\/)\{?\./.test(pattern))
  const isIgnored = (path: string) => unwanted.some(matches => matches(path))
  return {
    takes: path => !isIgnored(path) && wanted.some(matches => matches(path) && meansIt(matches, path)),
    enters: path => {
      const name = nameOf(path)
      return name !== CLAIMED && (!name.startsWith('.') || seesHidden) && !isIgnored(path)
    },
  }
}

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

function globOf(pattern: string): (path: string) => boolean {
  const glob = new Glob(pattern)
  return pattern.includes('/') ? path => glob.match(path) : path => glob.match(nameOf(path))
}

/**
 * Passing files count only where a pattern means them: `*.part` does, and `*` does not, because it also matches the name
 * with another ending.
 */
function meansIt(matches: (path: string) => boolean, path: string): boolean {
  const parts = path.split('/')
  return parts.every((part, at) =>
    PASSING.every(({ is, other }) => !is.test(part) || !matches(parts.with(at, other(part)).join('/'))),
  )
}

/** Whether one path may fit both patterns. Ranges in brackets count as any letter, so that it may say so of more. */
export function mayMeet(one: string, other: string): boolean {
  const isOfNames = !one.includes('/') || !other.includes('/')
  const plain = (pattern: string) => choicesOf(isOfNames ? nameOf(pattern) : pattern).map(letters)
  return plain(one).some(a => plain(other).some(b => meet(a, b)))
}

/** A pattern without braces for each choice that it has. */
function choicesOf(pattern: string): string[] {
  const found = /^(.*?)\{([^{}]*)\}(.*)$/.exec(pattern)
  return found ? found[2]!.split(',').flatMap(each => choicesOf(found[1]! + each + found[3]!)) : [pattern]
}

const letters = (pattern: string): string => pattern.replaceAll(/\[[^\]]*\]/g, '?').replaceAll(/\*+/g, '*')

/** Whether one text fits both, where `*` stands for any text and `?` for any letter. */
function meet(one: string, other: string): boolean {
  // reached[n]: what was read of `one` fits the first n letters of `other`.
  let reached = [true]
  for (let n = 1; n <= other.length; n++) reached[n] = reached[n - 1]! && other[n - 1] === '*'
  for (const letter of one) {
    const before = reached
    reached = [before[0]! && letter === '*']
    for (let n = 1; n <= other.length; n++) {
      const against = other[n - 1]!
      const skips = letter === '*' || against === '*'
      const fits = skips ? before[n]! || reached[n - 1]! : before[n - 1]!
      reached[n] = fits && (skips || letter === '?' || against === '?' || letter === against)
    }
  }
  return reached[other.length]!
}

/** What is wrong with a pattern, in words that continue its place; null for a good one. */
export function patternProblem(pattern: string): string | null {
  if (pattern.trim() === '') return 'is empty'
  if (pattern.startsWith('!')) return 'begins with !: write it in `ignore` without that'
  if (pattern.startsWith('/') || pattern.split('/').includes('..')) {
    return 'must be a path inside the folder, without / before it and without ..'
  }
  return null
}
