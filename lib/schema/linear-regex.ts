// Regular expressions that others wrote, with RE2: its time grows only with the length of the text, while some of
// JavaScript's never finish. CEL's specification requires it for `matches`. https://github.com/google/re2/wiki/Syntax

import { messageOf } from '../error.ts'
import type { Work } from './work-budget.ts'

const MAX_PATTERN_LENGTH = 1_000
/** Maximum number of instructions of a compiled pattern, in which repetitions are expanded. */
const MAX_INSTRUCTIONS = 2_000
const MAX_KEPT = 100
/** The cost of compiling one instruction, which takes about 3 µs (measured). */
const UNITS_PER_INSTRUCTION = 30
const RE2_ONLY = 'this must be a regular expression of RE2 (https://github.com/google/re2/wiki/Syntax)'
const TOO_LARGE = 'this regular expression repeats too much: use smaller counts'
const TOO_LARGE_TOGETHER =
  'the regular expressions of this file are too large together: use smaller counts, or move some into sub-teams'

interface Pattern {
  test(text: string): boolean
  programSize(): number
}

const patterns = new Map<string, Pattern>()

/**
 * Compiles a pattern. Throws when the pattern is invalid. Calls `pay` with an estimate of the instructions before it
 * compiles them.
 */
function compilePattern(pattern: string, pay: (instructions: number) => void): Pattern {
  const known = patterns.get(pattern)
  if (known) return known
  if (pattern.length > MAX_PATTERN_LENGTH)
    throw new Error(`a regular expression may have at most ${MAX_PATTERN_LENGTH} characters`)
  const estimate = instructionsOf(pattern)
  if (estimate > MAX_INSTRUCTIONS) throw new Error(TOO_LARGE)
  pay(estimate)
  const compiled = parse(pattern)
  if (compiled.programSize() > MAX_INSTRUCTIONS) throw new Error(TOO_LARGE)
  if (patterns.size >= MAX_KEPT) patterns.clear()
  patterns.set(pattern, compiled)
  return compiled
}

/** An estimate: one for each character or class, times the counts of its repetitions. */
function instructionsOf(pattern: string): number {
  const outer: number[] = []
  let group = 0
  let last = 0
  const item = (size: number) => {
    group += size
    last = size
  }
  for (const [token, , least, most] of pattern.matchAll(
    /\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(\{(\d+)(?:,(\d*))?\})|[\s\S]/g,
  )) {
    if (least !== undefined) {
      const times = Math.max(1, Number(most || least) + (most === '' ? 1 : 0))
      group += last * (times - 1)
      last *= times
    } else if (token === '(') {
      outer.push(group)
      group = 0
    } else if (token === ')') {
      const inner = group
      group = outer.pop() ?? 0
      item(inner + 2)
    } else if (!'*+?'.includes(token)) item(1)
  }
  return outer.reduce((sum, size) => sum + size, group)
}

function parse(pattern: string): Pattern {
  try {
    return re2().compile(pattern)
  } catch (error) {
    const reason = messageOf(error).replace(/^error parsing regexp: /, '')
    throw new Error(`${RE2_ONLY}: ${reason}`)
  }
}

/** Loaded at first use, because most teams use no regular expression. */
function re2() {
  return (require('re2js') as typeof import('re2js')).RE2JS
}

/**
 * A pattern in the syntax of JavaScript, which JSON Schema uses, in that of RE2. What RE2 does not have stays as it is,
 * and is refused when the pattern is compiled.
 */
export function fromJavaScript(pattern: string): string {
  // The translation would read it as the letter k.
  if (/(?:^|[^\\])(?:\\\\)*\\k</.test(pattern)) throw new Error(`${RE2_ONLY}: it has no references to groups`)
  return re2().translateRegExp(pattern)
}

/**
 * Checks a pattern that is a literal in a file, and throws when it is invalid. All patterns of the file share the
 * budget `work`.
 */
export function checkPattern(pattern: string, work: Work | undefined): void {
  compilePattern(pattern, instructions => work?.spend(instructions, TOO_LARGE_TOGETHER))
}

/** Whether the pattern matches some part of the text. */
export function matches(text: string, pattern: string, work: Work): boolean {
  const compiled = compilePattern(pattern, instructions => work.spend(instructions * UNITS_PER_INSTRUCTION))
  const steps = Math.ceil(text.length * (1 + compiled.programSize() / 100))
  work.spend(
    steps,
    `${text.length} characters are too many for this regular expression: use a shorter text or a simpler pattern`,
  )
  return compiled.test(text)
}
