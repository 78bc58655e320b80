// `text.matches(pattern)` by RE2, which CEL's specification asks for: its time grows with the text, whatever the pattern.
// cel-js takes JavaScript's own, where some patterns take longer than anybody waits. https://github.com/google/re2/wiki/Syntax

import type { ASTNode } from '@marcbachmann/cel-js'
import { messageOf } from '../../error.ts'
import type { Work } from './work.ts'

const PATTERN_MOST = 1_000
/** Instructions of a compiled pattern: repetitions are written out in it. */
const PROGRAM_MOST = 2_000
const KEPT = 100

interface Pattern {
  test(text: string): boolean
  programSize(): number
}

const patterns = new Map<string, Pattern>()

/** Throws what is wrong with the pattern. */
export function compilePattern(pattern: string): Pattern {
  const known = patterns.get(pattern)
  if (known) return known
  if (pattern.length > PATTERN_MOST) throw new Error(`a regular expression has at most ${PATTERN_MOST} characters`)
  const compiled = parse(pattern)
  if (compiled.programSize() > PROGRAM_MOST)
    throw new Error('this regular expression repeats too much: use smaller counts')
  if (patterns.size >= KEPT) patterns.clear()
  patterns.set(pattern, compiled)
  return compiled
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

/** Whether the pattern matches some part of the text. */
export function matches(text: string, pattern: string, work: Work): boolean {
  const compiled = compilePattern(pattern)
  const steps = Math.ceil(text.length * (1 + compiled.programSize() / 100))
  work.spend(steps, `${text.length} characters are too many for this regular expression: narrow the text or it`)
  return compiled.test(text)
}
