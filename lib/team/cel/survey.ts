// Walks the syntax tree of an expression, and collects the names that it reads, the parts of them, and mistakes.

import type { ASTNode } from '@marcbachmann/cel-js'
import { messageOf } from '../../error.ts'
import { checkPattern } from '../../schema/linear-regex.ts'
import type { Work } from '../../schema/work-budget.ts'
import { didYouMean, type OtherNames } from '../../text/spelling.ts'
import { NAMESPACES, unknownFunction } from './calls.ts'
import type { Mistake } from './hints.ts'
import { type InputTypes, neverTrue } from './known.ts'
import { type Key, nodesIn, type Path, pathOf } from './path.ts'

/** What an expression may name. */
export interface Names {
  phases: ReadonlySet<string>
  /** In a map in place: the phases outside of it, which cannot be named. */
  around?: ReadonlySet<string>
  inputs: ReadonlySet<string>
  /** Whether `item` and `index` exist here. */
  item: boolean
  /** Whether `secrets` may be used here. */
  secrets?: boolean
  /** Whether there is the `result` of a turn here. */
  result?: boolean
  /** The only names that may be used here, such as `inputs` or `run.environment`, and why. */
  only?: { roots: readonly string[]; why: string }
  /** The variables of an occasion of a trigger, which are the only names here. What they contain is known when it comes. */
  occasion?: readonly string[]
  /** Inputs of type file that become absolute paths here. Set only where `file()` may be called. */
  files?: ReadonlySet<string>
  /** The declared types of the inputs. Set where what can never be true is a mistake. */
  types?: InputTypes
  /** The phases of type map, where `types` is set. */
  maps?: ReadonlySet<string>
  /** The budget that all regular expressions of a file share. */
  patterns?: Work
}

/** A phase, an input, a secret, `item` or `index` that an expression names; `*` for all inputs. */
export interface Use {
  kind: 'phase' | 'input' | 'secret' | 'item'
  name: string
  offset: number
}

/** The part of a value that is read: all of it, or these of its fields. */
export type Read = 'all' | Map<string, Read>

/** The pattern of a call of `matches`; null for any other node. */
function patternOf(node: ASTNode): ASTNode | null {
  if (node.op !== 'rcall') return null
  const [method, , args] = node.args
  return method === 'matches' && args.length === 1 ? args[0]! : null
}

/** A field that is reached from a root by names alone. */
export interface Access {
  node: ASTNode
  root: string
  keys: readonly string[]
}

const PHASE_FIELDS = ['state', 'reason', 'text', 'data', 'files', 'error']
const RUN_FIELDS = ['id', 'name', 'started_at', 'environment']
const RESULT_FIELDS = ['text', 'data', 'files']
const ROOTS = ['inputs', 'phases', 'item', 'index', 'run', 'secrets', 'result']
const TYPES = ['bool', 'int', 'uint', 'double', 'string', 'bytes', 'list', 'map', 'null_type', 'type']
const LOOPS = new Set([...['all', 'exists', 'exists_one', 'map', 'filter'], ...['sortBy', 'optMap', 'optFlatMap']])

/** The names in other pipelines and languages. */
const OTHER_NAMES: OtherNames = {
  phases: ['steps', 'needs', 'jobs', 'tasks'],
  inputs: ['params', 'parameters', 'vars', 'args'],
  item: ['loop'],
  null: ['None', 'nil', 'undefined'],
  true: ['True'],
  false: ['False'],
}

const SECRETS_PLACE =
  'secrets can be used only in `env` and in the entry fields of agents, so that none gets into a record'
/** What `repeat` cannot do, because each of its turns has the same entries. */
export const NEXT_PAGE =
  'to follow a link or a cursor, let a team call itself: see docs/write-a-team.md, "Page by page"'
const RESULT_PLACE = `\`result\` exists only in \`until\` of a \`repeat\`; the result of a phase is \`phases.<name>.data\`; ${NEXT_PAGE}`
const FILE_PLACE = '`file()` can be called only in `env`, where a command needs the absolute path'

export class Survey {
  readonly uses: Use[] = []
  readonly mistakes: Mistake[] = []
  readonly reads = new Map<string, Read>()
  readonly nodes: ASTNode[] = []
  readonly accesses: Access[] = []
  readonly #names: Names

  constructor(names: Names) {
    this.#names = names
  }

  /** `bound` has the variables of the loops around `node`. */
  visit(node: ASTNode, bound: readonly string[]): void {
    this.nodes.push(node)
    this.#pattern(patternOf(node))
    if (this.#names.types) this.mistakes.push(...neverTrue(node, this.#names.types, bound))
    const path = pathOf(node)
    if (path) {
      if (!bound.includes(path.root)) this.#name(path)
    } else if (node.op === 'call') {
      const [name, args] = node.args
      this.#function(name, node.start)
      if (name === 'file' && !this.#names.files) this.#mistake(node.start, FILE_PLACE)
      this.#visitAll(args, bound)
    } else if (node.op === 'rcall') {
      this.#visitMethod(node, node.args, bound)
    } else if (node.op !== 'value') {
      this.#visitAll(node.args, bound)
    }
  }

  #visitMethod(node: ASTNode, call: [string, ASTNode, ASTNode[]], bound: readonly string[]): void {
    const [method, receiver, args] = call
    this.#function(method, node.input.indexOf(method, receiver.end))
    const namespace = receiver.op === 'id' && NAMESPACES.includes(receiver.args) && !bound.includes(receiver.args)
    if (!namespace) this.visit(receiver, bound)
    const [variable, ...rest] = args
    const declares = LOOPS.has(method) || (namespace && receiver.args === 'cel' && method === 'bind')
    if (!declares || variable?.op !== 'id') return this.#visitAll(args, bound)
    const inner = [...bound, variable.args]
    for (const each of rest) this.visit(each, inner)
  }

  #function(name: string, offset: number): void {
    const unknown = unknownFunction(name)
    if (unknown) this.#mistake(offset, unknown)
  }

  /** Checks a literal pattern before it is used. */
  #pattern(node: ASTNode | null): void {
    if (node?.op !== 'value' || typeof node.args !== 'string') return
    try {
      checkPattern(node.args, this.#names.patterns)
    } catch (error) {
      this.#mistake(node.start, messageOf(error))
    }
  }

  #visitAll(args: unknown, bound: readonly string[]): void {
    for (const each of nodesIn(args)) this.visit(each, bound)
  }

  #name(path: Path): void {
    const { root, offset, keys } = path
    if (keys.length === 0 && TYPES.includes(root)) return
    if (this.#names.occasion) {
      if (!this.#names.occasion.includes(root)) return this.#mistake(offset, this.#unknown(root))
      return this.#remember(path)
    }
    if (!ROOTS.includes(root)) return this.#mistake(offset, this.#unknown(root))
    const { only } = this.#names
    const [first, second] = keys
    if (only && ![root, `${root}.${first?.name}`].some(name => only.roots.includes(name)))
      return this.#mistake(offset, only.why)
    switch (root) {
      case 'item':
      case 'index':
        if (!this.#names.item) {
          this.#mistake(offset, `\`${root}\` exists only in the \`key\`, \`inputs\` and \`phases\` of a map`)
        }
        this.uses.push({ kind: 'item', name: root, offset })
        break
      case 'run':
        if (first && !RUN_FIELDS.includes(first.name))
          this.#mistake(first.offset, unknownField('a run', first, RUN_FIELDS))
        break
      case 'result':
        if (!this.#names.result) return this.#mistake(offset, RESULT_PLACE)
        if (first && !RESULT_FIELDS.includes(first.name))
          this.#mistake(first.offset, unknownField('a result', first, RESULT_FIELDS))
        break
      case 'inputs':
        this.#input(path)
        break
      case 'secrets':
        if (!this.#names.secrets) return this.#mistake(offset, SECRETS_PLACE)
        if (!first) return this.#mistake(offset, "name a secret by `secrets.<name>` or `secrets['<name>']`")
        this.uses.push({ kind: 'secret', name: first.name, offset: first.offset })
        break
      default:
        if (!first) this.#mistake(offset, "name a phase by `phases.<name>` or `phases['<name>']`")
        else if (!this.#names.phases.has(first.name)) {
          this.#mistake(first.offset, this.#unknownPhase(first.name))
        } else if (second && !PHASE_FIELDS.includes(second.name)) {
          this.#mistake(second.offset, unknownField('a phase', second, PHASE_FIELDS))
        } else this.uses.push({ kind: 'phase', name: first.name, offset: first.offset })
    }
    this.#remember(path)
  }

  #remember({ root, keys }: Path): void {
    remember(this.reads, [root, ...keys.map(key => key.name)])
    for (const [at, { node }] of keys.entries()) {
      this.accesses.push({ node, root, keys: keys.slice(0, at + 1).map(key => key.name) })
    }
  }

  #input({ offset, keys: [first] }: Path): void {
    if (!first) this.uses.push({ kind: 'input', name: '*', offset })
    else if (this.#names.inputs.has(first.name)) {
      this.uses.push({ kind: 'input', name: first.name, offset: first.offset })
    } else if (this.#names.item && (first.name === 'item' || first.name === 'index')) {
      this.#mistake(first.offset, `\`${first.name}\` is no input: write \`${first.name}\` alone`)
    } else {
      this.#mistake(first.offset, `no input \`${first.name}\`${didYouMean(first.name, this.#names.inputs)} is declared`)
    }
  }

  #unknownPhase(name: string): string {
    if (this.#names.around?.has(name)) {
      return `\`${name}\` is outside of this map: name it in the \`inputs\` of the map, and read \`inputs.<name>\` here`
    }
    return `there is no phase \`${name}\`${didYouMean(name, this.#names.phases)}`
  }

  #unknown(root: string): string {
    const known =
      this.#names.occasion ??
      ROOTS.filter(
        name =>
          (this.#names.item || (name !== 'item' && name !== 'index')) &&
          (this.#names.secrets || name !== 'secrets') &&
          (this.#names.result || name !== 'result'),
      )
    const near = didYouMean(root, [...known, 'null', 'true', 'false'], OTHER_NAMES)
    return `unknown name \`${root}\`${near}: there are ${known.join(', ')}`
  }

  #mistake(offset: number, message: string): void {
    this.mistakes.push({ offset, message })
  }
}

function unknownField(of: string, { name }: Key, known: readonly string[]): string {
  return `${of} has no \`${name}\`${didYouMean(name, known)}: it has ${known.join(', ')}`
}

function remember(reads: Map<string, Read>, [key, ...rest]: string[]): void {
  const known = reads.get(key!)
  if (known === 'all') return
  if (rest.length === 0) {
    reads.set(key!, 'all')
    return
  }
  const inner = known ?? new Map<string, Read>()
  reads.set(key!, inner)
  remember(inner, rest)
}
