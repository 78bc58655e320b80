// `text.matches(pattern)` by RE2, which CEL's specification asks for: its time grows with the text, whatever the pattern.
// cel-js takes JavaScript's own, where some patterns take longer than anybody waits. https://github.com/google/re2/wiki/Syntax

import type { ASTNode } from '@marcbachmann/cel-js'
import { messageOf } from '../../error.ts'
import type { Work } from './work.ts'

const PATTERN_MOST = 1_000
/** Instructions of a compiled pattern: repetitions are written out in it. */
const PROGRAM_MOST = 2_000
const KEPT = 100
/** Measured: an instruction takes about 3 µs to compile. */
const UNITS_PER_INSTRUCTION = 30
const TOO_LARGE = 'this regular expression repeats too much: use smaller counts'
const TOO_LARGE_TOGETHER =
  'the regular expressions of this file are too large together: use smaller counts, or move some into sub-teams'

interface Pattern {
  test(text: string): boolean
  programSize(): number
}

const patterns = new Map<string, Pattern>()

/** Throws what is wrong with the pattern. `pay` is told about how many instructions are to be compiled, beforehand. */
function compilePattern(pattern: string, pay: (instructions: number) => void): Pattern {
  const known = patterns.get(pattern)
  if (known) return known
  if (pattern.length > PATTERN_MOST) throw new Error(`a regular expression has at most ${PATTERN_MOST} characters`)
  const estimate = instructionsOf(pattern)
  if (estimate > PROGRAM_MOST) throw new Error(TOO_LARGE)
  pay(estimate)
  const compiled = parse(pattern)
  if (compiled.programSize() > PROGRAM_MOST) throw new Error(TOO_LARGE)
  if (patterns.size >= KEPT) patterns.clear()
  patterns.set(pattern, compiled)
  return compiled
}

/** One for each character or class, times the counts of its repetitions. */
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
  // Loaded at first use: most teams match nothing.
  const { RE2JS } = require('re2js') as typeof import('re2js')
  try {
    return RE2JS.compile(pattern)
  } catch (error) {
    const reason = messageOf(error).replace(/^error parsing regexp: /, '')
    throw new Error(`no regular expression of RE2 (https://github.com/google/re2/wiki/Syntax): ${reason}`)
  }
}

/** Of a call of `matches`, its pattern. */
export function patternOf(node: ASTNode): ASTNode | null {
  if (node.op !== 'rcall') return null
  const [method, , args] = node.args
  return method === 'matches' && args.length === 1 ? args[0]! : null
}

/** Throws what is wrong with a pattern that a file writes out; `work` is what the patterns of the file may have in all. */
export function checkPattern(pattern: string, work: Work | undefined): void {
  compilePattern(pattern, instructions => work?.spend(instructions, TOO_LARGE_TOGETHER))
}

/** Whether the pattern matches some part of the text. */
export function matches(text: string, pattern: string, work: Work): boolean {
  const compiled = compilePattern(pattern, instructions => work.spend(instructions * UNITS_PER_INSTRUCTION))
  const steps = Math.ceil(text.length * (1 + compiled.programSize() / 100))
  work.spend(steps, `${text.length} characters are too many for this regular expression: narrow the text or it`)
  return compiled.test(text)
}
