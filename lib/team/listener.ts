// A phase with `notify`: it runs on events, in no order with the others.

import Type from 'typebox'
import type { Handler } from '../agent/define.ts'
import { findAgent } from './call.ts'
import { checkAgainst, type Draft, nothingAt, only, siteOf } from './draft.ts'
import { field, itemsOf, type Mapping, type Node, textOf } from './node.ts'
import { closedObject, ownFields, PHASE_FIELDS } from './schema.ts'
import { checkTogether } from './shape.ts'
import type { EventName, Listener } from './team.ts'
import { compileEntry, compileExpression } from './template.ts'

/** What makes a phase an ordinary one. */
const ORDINARY = ['type', 'depends_on', 'sources', 'target_entries', 'commands'] as const

export function compileListener(draft: Draft, node: Mapping, name: string): Listener {
  const notify = node.entries.get('notify')!
  for (const key of ORDINARY) {
    if (!node.entries.has(key)) continue
    const why = 'a phase either listens to events or runs among the others'
    draft.source.report(notify.key, `\`notify\` cannot stand together with \`${key}\`: ${why}`)
  }
  const definition = findAgent(draft, node)
  const handler = definition?.notify
  if (definition && !handler) {
    draft.source.report(notify.key, `agent \`${textOf(field(node, 'agent'))}\` handles no events`)
  }
  const plain = only(node, key => !(ORDINARY as readonly string[]).includes(key))
  checkAgainst(draft, plain, handler ? phaseSchema(handler) : OPEN)
  const site = siteOf(draft, null)
  const own = only(plain, key => !Object.hasOwn(PHASE_FIELDS.listener, key))
  return {
    name,
    place: draft.source.place(node.offset),
    agent: textOf(field(node, 'agent')) ?? '',
    fields: compileEntry(own, site),
    on: compileEvents(draft, notify.node, handler, own),
  }
}

const OPEN = Type.Object(PHASE_FIELDS.listener, { additionalProperties: Type.Any({ 'x-template': true }) })

/** Fields on the phase serve all of its events; each may stand with the event instead. */
function phaseSchema(handler: Handler) {
  const fields = Object.entries(ownFields(handler.entry)).map(([key, schema]) => [key, Type.Optional(schema)] as const)
  return closedObject({ ...PHASE_FIELDS.listener, ...Object.fromEntries(fields) })
}

function compileEvents(draft: Draft, notify: Node, handler: Handler | undefined, own: Mapping): Listener['on'] {
  const on: Listener['on'] = {}
  if (notify.kind === 'map') {
    for (const [event, { key, node }] of notify.entries) {
      const options = node.kind === 'map' ? node : nothingAt(key)
      if (node.kind !== 'map' && !(node.kind === 'scalar' && node.value === null)) {
        draft.source.report(node, `expected the options of ${event}, as a mapping`)
      }
      on[event as EventName] = compileOptions(draft, options, handler, own)
    }
  }
  for (const item of itemsOf(notify)) {
    const event = textOf(item)
    if (event !== undefined && on[event as EventName]) draft.source.report(item, `${event} stands here twice`)
    if (event !== undefined) on[event as EventName] = compileOptions(draft, nothingAt(item), handler, own)
  }
  return on
}

function compileOptions(draft: Draft, node: Mapping, handler: Handler | undefined, own: Mapping) {
  const site = siteOf(draft, null)
  const when = field(node, 'when')
  const options = only(node, key => key !== 'when')
  if (handler) {
    const fields = ownFields(handler.entry)
    for (const key of own.entries.keys()) if (fields[key]) fields[key] = Type.Optional(fields[key])
    checkAgainst(draft, options, closedObject(fields))
    const all = { ...options, entries: new Map([...own.entries, ...options.entries]) }
    for (const { place, message } of checkTogether(all, handler.entry)) draft.source.report(place, message)
  }
  return {
    ...(when?.kind === 'scalar' && { when: compileExpression(when, site, ['bool'], '`when` must give a bool') }),
    options: compileEntry(options, site),
  }
}
