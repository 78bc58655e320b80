// Reads the variables of one evaluation from its scope, and gives null where a value may be missing.

import { isObject, type Json } from '../../json.ts'
import { currentEvaluation, type Evaluation } from './evaluation.ts'
import type { Access, Names, Read } from './survey.ts'
import type { CelValue } from './values.ts'

/** The variables that the expression reads, reduced to the parts that it names. */
export function contextOf(
  reads: ReadonlyMap<string, Read>,
  { files }: Pick<Names, 'files'>,
  evaluation: Evaluation,
): Record<string, CelValue> {
  const { scope } = evaluation
  const context: Record<string, CelValue> = {}
  for (const [root, read] of reads) {
    if (scope.occasion) context[root] = pick(scope.occasion[root] ?? null, read, evaluation)
    else if (root === 'phases') context.phases = phasesOf(read, evaluation)
    else if (root === 'secrets') context.secrets = secretsOf(read, evaluation)
    else if (root === 'inputs') context.inputs = pick(withPaths(evaluation, files, read), read, evaluation)
    else context[root] = pick(scope[root as 'run' | 'item' | 'index' | 'result'] ?? null, read, evaluation)
  }
  return context
}

function phasesOf(read: Read, evaluation: Evaluation): CelValue {
  const phases = new Map<string, CelValue>()
  if (read === 'all') return phases
  for (const [name, part] of read) {
    const value = evaluation.scope.phase(name)
    if (value.state !== 'completed') evaluation.incomplete.add(name)
    // Only named parts are read, because the scope may have to load each of them.
    phases.set(name, pick(value, part, evaluation))
  }
  return phases
}

function secretsOf(read: Read, { scope }: Evaluation): CelValue {
  const secrets = new Map<string, CelValue>()
  if (read === 'all') return secrets
  for (const name of read.keys()) {
    if (!scope.secret) throw new Error('secrets are not available here')
    secrets.set(name, scope.secret(name))
  }
  return secrets
}

/** The inputs. Inputs of type file become absolute paths where a command opens them. */
function withPaths({ scope }: Evaluation, files: Names['files'], read: Read): Json {
  const { inputs, file } = scope
  if (!files || !file) return inputs
  const named = [...files].filter(name => read === 'all' || read.has(name))
  const paths = named.flatMap(name => {
    const path = Object.hasOwn(inputs, name) ? inputs[name] : null
    return typeof path === 'string' ? [[name, file.call(scope, path)] as const] : []
  })
  return paths.length === 0 ? inputs : { ...inputs, ...Object.fromEntries(paths) }
}

function pick(value: Json, read: Read, evaluation: Evaluation): CelValue {
  if (read === 'all' || !isObject(value)) return evaluation.toCel(value)
  const picked = new Map<string, CelValue>()
  for (const [key, part] of read)
    if (Object.hasOwn(value, key)) picked.set(key, pick(value[key] as Json, part, evaluation))
  return picked
}

/** What need not be there, although it may be named. */
const OPEN_ROOTS = ['inputs', 'headers', 'query']

type Handle = (left: unknown, ...rest: unknown[]) => unknown

/**
 * Makes an access give null instead of an error: for a declared input that was not given, for a header or a parameter
 * that a request lacks, below the data of a phase that did not complete, and below the error of a phase that has none.
 * `has()` and `.?` find nothing there.
 */
export function forgiveMissing({ node, root, keys }: Access): void {
  if (node.op !== '.' && node.op !== '[]') return
  const [name, field] = keys
  const inner = node as typeof node & { handle: Handle }
  const { handle } = inner
  if (OPEN_ROOTS.includes(root) && keys.length === 1) {
    inner.handle = (left, ...rest) => (left instanceof Map && !left.has(name) ? null : handle(left, ...rest))
  } else if (root === 'phases' && keys.length > 2) {
    inner.handle = (left, ...rest) => {
      return left === null && (field === 'error' || currentEvaluation().incomplete.has(name!))
        ? null
        : handle(left, ...rest)
    }
  }
}
