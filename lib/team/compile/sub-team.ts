// Compares what a phase passes to its sub-team with the inputs that the sub-team declares.

import { didYouMean } from '../../text/spelling.ts'
import { formFor, givesAnother, hasTemplate, KINDS } from '../cel/cel.ts'
import { problemWith, type Team } from '../model/model.ts'
import type { Source } from '../yaml/yaml.ts'
import { type Node, toJson } from '../yaml/yaml.ts'
import type { SubCall } from './compilation.ts'

export function checkSubCall(source: Source, call: SubCall, team: Team): void {
  const fields = new Map(team.inputs.map(field => [field.name, field]))
  for (const [name, { key, node }] of call.inputs.entries) {
    const field = fields.get(name)
    if (!field) {
      source.report(key, `${team.name} has no input \`${name}\`${didYouMean(name, fields.keys())}`)
    } else if (isTemplated(node)) {
      const given = call.givens.get(node)
      const wanted = KINDS[field.type]
      if (!given || given.kind === wanted) continue
      const form = field.type === 'file' ? null : formFor(given, wanted)
      source.report(given.place, `input \`${name}\` of ${team.name}: ${givesAnother(given, wanted, form)}`)
    } else {
      const value = toJson(node)
      const problem = value === null && !field.required ? null : problemWith(value, field)
      if (problem) source.report(node, `input \`${name}\` of ${team.name}: ${problem}`)
    }
  }
  for (const { name, required, default: fallback } of fields.values()) {
    if (!required || fallback !== undefined || call.inputs.entries.has(name)) continue
    const place = { offset: call.inputs.offset, path: `${call.inputs.path}/${name}` }
    source.report(place, `input \`${name}\` of ${team.name} is required`)
  }
  for (const { input, secret, place } of call.secrets) {
    if (!fields.has(input) || fields.get(input)!.secret) continue
    source.report(
      place,
      `\`${secret}\` is secret, and input \`${input}\` of ${team.name} is not: mark it \`secret: true\` there`,
    )
  }
}

/** Whether the value is known only at run time. */
export function isTemplated(node: Node): boolean {
  if (node.kind === 'scalar') return typeof node.value === 'string' && hasTemplate(node.value)
  if (node.kind === 'list') return node.items.some(isTemplated)
  return [...node.entries.values()].some(entry => isTemplated(entry.node))
}
