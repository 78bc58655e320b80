// A phase with `notify`. It runs on events, outside the order of the other phases.

import type { Handler } from '../../agent/define.ts'
import { Type } from '../../schema/type.ts'
import { listed } from '../../text/spelling.ts'
import { compileEntry, compileExpression } from '../cel/cel.ts'
import type { EventName, Listener } from '../model/model.ts'
import { field, itemsOf, type Mapping, type Node, textOf } from '../yaml/yaml.ts'
import { findAgent } from './agent-call.ts'
import { type Compilation, checkAgainst, nothingAt, only, siteOf } from './compilation.ts'
import { closedObject, ownFields, PHASE_FIELDS } from './phase-schema.ts'
import { checkTogether } from './value-check.ts'

/** The fields that only ordinary phases have. */
const ORDINARY = ['type', 'depends_on', 'sources', 'target_entries', 'commands'] as const

export function compileListener(compilation: Compilation, node: Mapping, name: string): Listener {
  const notify = node.entries.get('notify')!
  for (const key of ORDINARY) {
    if (!node.entries.has(key)) continue
    const why = 'a phase either listens to events or runs among the others'
    compilation.source.report(notify.key, `\`notify\` cannot be combined with \`${key}\`: ${why}`)
  }
  const definition = findAgent(compilation, node)
  const handler = definition?.notify
  if (definition && !handler) {
    compilation.source.report(notify.key, handlesNone(compilation, textOf(field(node, 'agent')) ?? ''))
  }
  const plain = only(node, key => !(ORDINARY as readonly string[]).includes(key))
  const own = only(plain, key => !Object.hasOwn(PHASE_FIELDS.listener, key))
  const fields = compileEntry(own, siteOf(compilation, null, { secrets: true }))
  checkAgainst(compilation, plain, handler ? phaseSchema(handler) : OPEN)
  return {
    name,
    place: compilation.source.place(node.offset),
    agent: textOf(field(node, 'agent')) ?? '',
    fields,
    on: compileEvents(compilation, notify.node, handler, own),
  }
}

function handlesNone({ agents }: Compilation, agent: string): string {
  const able = agents?.names().filter(name => agents.get(name)?.notify) ?? []
  const others = able.length > 0 ? `: of those here, ${listed(able)} ${able.length > 1 ? 'do' : 'does'}` : ''
  return `agent \`${agent}\` handles no events${others}`
}

const OPEN = Type.Object(PHASE_FIELDS.listener, { additionalProperties: Type.Any({ 'x-template': true }) })

/** Fields on the phase apply to all of its events. Each may be given for an event instead, so none is required here. */
function phaseSchema(handler: Handler) {
  const fields = Object.entries(ownFields(handler.entry)).map(([key, schema]) => [key, Type.Optional(schema)] as const)
  return closedObject({ ...PHASE_FIELDS.listener, ...Object.fromEntries(fields) })
}

function compileEvents(
  compilation: Compilation,
  notify: Node,
  handler: Handler | undefined,
  own: Mapping,
): Listener['on'] {
  const on: Listener['on'] = {}
  if (notify.kind === 'map') {
    for (const [event, { key, node }] of notify.entries) {
      const options = node.kind === 'map' ? node : nothingAt(key)
      if (node.kind !== 'map' && !(node.kind === 'scalar' && node.value === null)) {
        compilation.source.report(node, `expected a mapping with the options of ${event}`)
      }
      on[event as EventName] = compileOptions(compilation, options, handler, own)
    }
  }
  for (const item of itemsOf(notify)) {
    const event = textOf(item)
    if (event !== undefined && on[event as EventName]) compilation.source.report(item, `${event} is listed twice`)
    if (event !== undefined) on[event as EventName] = compileOptions(compilation, nothingAt(item), handler, own)
  }
  return on
}

function compileOptions(compilation: Compilation, node: Mapping, handler: Handler | undefined, own: Mapping) {
  const site = siteOf(compilation, null)
  const when = field(node, 'when')
  const options = only(node, key => key !== 'when')
  const entry = compileEntry(options, siteOf(compilation, null, { secrets: true }))
  if (handler) {
    const fields = ownFields(handler.entry)
    for (const key of own.entries.keys()) if (fields[key]) fields[key] = Type.Optional(fields[key])
    checkAgainst(compilation, options, closedObject(fields))
    const all = { ...options, entries: new Map([...own.entries, ...options.entries]) }
    for (const { place, message } of checkTogether(all, handler.entry)) compilation.source.report(place, message)
  }
  return {
    ...(when?.kind === 'scalar' && { when: compileExpression(when, site, ['bool'], '`when` must give a bool') }),
    options: entry,
  }
}
