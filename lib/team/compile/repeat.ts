// `repeat` of a phase: its condition, and what may not be repeated.

import { compileExpression } from '../cel/cel.ts'
import { type AgentCall, onceEntry, type Repeating } from '../model/model.ts'
import { field, type Mapping } from '../yaml/yaml.ts'
import { type Compilation, duration, isTrue, numberOf, siteOf } from './compilation.ts'

/** Undefined without `repeat`, and where something of it is missing, which the schema reports. */
export function compileRepeat(compilation: Compilation, node: Mapping, phase: string): Repeating | undefined {
  const repeat = field(node, 'repeat')
  const until = field(repeat, 'until')
  const every = duration(field(repeat, 'every'))
  const most = numberOf(field(repeat, 'most'))
  if (repeat && isTrue(field(node, 'always'))) {
    compilation.source.report(
      node.entries.get('repeat')!.key,
      'a phase with `always` cannot be repeated, because no cancel would end its waits: repeat a phase before it',
    )
  }
  const condition =
    until?.kind === 'scalar' && until.value !== null
      ? compileExpression(until, siteOf(compilation, phase, { result: true }), ['bool'], '`until` must give a bool')
      : undefined
  return condition && every !== undefined && most !== undefined ? { until: condition, every, most } : undefined
}

/** A turn does everything again, so nothing in it may be of the kind that happens only once. */
export function refuseOnce({ agents, source }: Compilation, node: Mapping, call: AgentCall): void {
  const repeat = node.entries.get('repeat')
  const once = repeat && agents ? onceEntry(agents, call) : undefined
  if (once === undefined) return
  const what = once === '' ? 'this phase' : `the entry \`${once}\``
  source.report(
    repeat!.key,
    `\`repeat\` would write what ${what} writes in each turn, and it is \`once\`: only reads and writes with the effect \`idempotent\` can be repeated`,
  )
}
