// What a phase asks of its agent: finds the handler, and checks the entries and fields against the handler's schema.

import { basename } from 'node:path'
import type { TObject, TSchema } from 'typebox'
import type { AgentDefinition, Handler } from '../../agent/define.ts'
import { Type } from '../../schema/type.ts'
import { didYouMean, listed, nameMeant } from '../../text/spelling.ts'
import { PHASE_TYPES } from '../../wire/states.ts'
import { compileEntry, hasTemplate } from '../cel/cel.ts'
import { type AgentCall, accountIn, COMMANDERS, mayHaveAccount } from '../model/model.ts'
import { field, itemsOf, type Mapping, type Node, textOf } from '../yaml/yaml.ts'
import { type Compilation, checkAgainst, only, siteOf } from './compilation.ts'
import { checkForeign, checkItemExpressions } from './foreign.ts'
import { OTHER_FIELDS } from './other-fields.ts'
import { closedObject, entryList, ownFields, PHASE_FIELDS } from './phase-schema.ts'

/** The name of an agent without its account: `issues@eu` is the agent `issues` with other settings. */
export function agentName(ref: string): string {
  return ref.split('@', 1)[0]!
}

/**
 * The agent that a phase names; where there is none, which is reported, the one that was probably meant, so that what else is
 * wrong is found too. Undefined when nothing is near, or when agents are not looked up.
 */
export function findAgent(compilation: Compilation, node: Mapping): AgentDefinition | undefined {
  return agentAt(compilation, field(node, 'agent'))
}

function agentAt(compilation: Compilation, place: Node | undefined): AgentDefinition | undefined {
  const ref = textOf(place)
  if (!compilation.agents || !place || ref === undefined) return undefined
  const name = agentName(ref)
  const found = compilation.agents.get(name)
  const names = compilation.agents.names()
  if (!found) {
    const skipped = compilation.agents.skipped?.find(({ file }) => basename(file) === `${name}.ts`)
    const known = names.length > 0 ? `there are ${listed(names)}` : 'there are no agents'
    const why = skipped
      ? `agent \`${name}\` cannot be used: ${skipped.reason}`
      : `unknown agent \`${name}\`${didYouMean(name, names)}: ${known}`
    compilation.source.report(place, why)
    const meant = skipped ? undefined : nameMeant(name, names)
    return meant === undefined ? undefined : compilation.agents.get(meant)
  } else if (!/^[^@]+(@[A-Za-z0-9_-]+)?$/.test(ref)) {
    compilation.source.report(place, `write \`${name}\`, or \`${name}@<account>\` for another account`)
  }
  return found
}

interface Handlers {
  source?: Handler | undefined
  target?: Handler | undefined
  phase?: Handler | undefined
}

/** Checks and compiles an ordinary phase that calls an agent. */
export function compileCall(compilation: Compilation, node: Mapping, phase: string): AgentCall {
  const definition = findAgent(compilation, node)
  const handlers = definition && handlersOf(compilation, node, definition)
  const schema = handlers ? schemaFor(compilation, node, handlers) : isUnclear(node) ? UNCLEAR : OPEN
  const site = siteOf(compilation, phase, { secrets: true })
  const core = new Set([...Object.keys(PHASE_FIELDS.standard), 'sources', 'target_entries'])
  const entriesOf = (key: string) =>
    itemsOf(field(node, key)).map(entry => ({
      name: textOf(field(entry, 'name')) ?? '',
      entry: compileEntry(entry, site),
    }))
  const action = textOf(field(node, 'action'))
  const entries = [...itemsOf(field(node, 'sources')), ...itemsOf(field(node, 'target_entries'))]
  const agent = textOf(field(node, 'agent')) ?? ''
  const call: AgentCall = {
    agent,
    ...(action !== undefined && { action }),
    sources: entriesOf('sources'),
    targets: entriesOf('target_entries'),
    fields: compileEntry(
      only(node, key => !core.has(key)),
      site,
    ),
  }
  // After the templates are compiled, because what they give is checked, too.
  checkAgainst(compilation, node, schema)
  checkForeign(compilation, node, schema)
  for (const [key, direction] of LISTS) {
    const entry = handlers?.[direction]?.entry
    if (entry) for (const each of itemsOf(field(node, key))) checkItemExpressions(compilation, each, entry)
  }
  if (!handlers) checkSpelling(compilation, node)
  checkRetry(compilation, node)
  checkNames(compilation, entries)
  if (mayHaveAccount(agent)) checkAccounts(compilation, agent, entries)
  return call
}

/** Checks `retry`. A phase is retried as a whole, so every command of it must be repeatable. */
function checkRetry(compilation: Compilation, node: Mapping): void {
  const retry = node.entries.get('retry')
  const once = itemsOf(field(node, 'commands')).find(command => textOf(field(command, 'effect')) === 'once')
  if (!retry || !once || !COMMANDERS.includes(agentName(textOf(field(node, 'agent')) ?? ''))) return
  const command = textOf(field(once, 'name')) ?? ''
  compilation.source.report(
    retry.key,
    `\`retry\` would run the command \`${command}\` again, which is \`once\`: put that command into a phase of its own without \`retry\``,
  )
}

const anyOther = { additionalProperties: Type.Any({ 'x-template': true }) }

/** The schema of a phase whose agent is not known. Any other field may belong to the agent. */
const OPEN = Type.Object(
  {
    ...PHASE_FIELDS.standard,
    sources: Type.Optional(entryList(Type.Object({}, { additionalProperties: true }))),
    target_entries: Type.Optional(entryList(Type.Object({}, { additionalProperties: true }))),
  },
  anyOther,
)

const UNCLEAR = Type.Object({ ...OPEN.properties, agent: Type.Optional(PHASE_FIELDS.standard.agent) }, anyOther)

/** Whether nobody can tell what a phase is, so that it may be one without an agent. Its type is a mistake. */
function isUnclear(node: Mapping): boolean {
  const type = field(node, 'type')
  return type !== undefined && nameMeant(textOf(type) ?? '', PHASE_TYPES) === undefined
}

/**
 * Without the agent its fields are not known, but a field whose name is close to a common one is reported as a
 * misspelling, and so are names of other pipelines where no agent is named that could have them.
 */
function checkSpelling(compilation: Compilation, node: Mapping): void {
  const core = [...Object.keys(PHASE_FIELDS.standard), 'sources', 'target_entries', 'commands']
  const others = node.entries.has('agent') ? {} : OTHER_FIELDS
  for (const [key, entry] of node.entries) {
    const near = core.includes(key) ? '' : didYouMean(key, core, others)
    if (near) compilation.source.report(entry.key, `unknown field \`${key}\`${near}`)
  }
}

function handlersOf(compilation: Compilation, node: Mapping, definition: AgentDefinition): Handlers | undefined {
  const { actions = {}, source, target, phase } = definition
  const name = agentName(textOf(field(node, 'agent')) ?? '')
  const place = field(node, 'action')
  const action = textOf(place)
  const known = Object.keys(actions)
  if (known.length === 0) {
    if (place)
      compilation.source.report(node.entries.get('action')!.key, `agent \`${name}\` has no actions: remove this`)
    if (source || target || phase) return { source, target, phase }
    compilation.source.report(field(node, 'agent')!, `agent \`${name}\` can only listen: give the phase \`notify\``)
    return undefined
  }
  if (!place) {
    if (source || target || phase) return { source, target, phase }
    compilation.source.report(
      { offset: node.offset, path: `${node.path}/action` },
      `\`action\` is missing: ${oneOf(known)}`,
    )
    return undefined
  }
  if (action === undefined) return undefined
  const found = Object.hasOwn(actions, action) ? actions[action] : undefined
  if (found) return { [found.direction]: found }
  compilation.source.report(
    place,
    `agent \`${name}\` has no action \`${action}\`${didYouMean(action, known)}: ${oneOf(known)}`,
  )
  const meant = nameMeant(action, known)
  return meant === undefined ? undefined : { [actions[meant]!.direction]: actions[meant] }
}

function oneOf(names: string[]): string {
  return names.length === 1 ? `there is ${names[0]}` : `one of ${names.join(', ')}`
}

const LISTS = [
  ['sources', 'source', 'reads'],
  ['target_entries', 'target', 'writes'],
] as const

function schemaFor(compilation: Compilation, node: Mapping, handlers: Handlers): TSchema {
  const given = LISTS.filter(([key]) => node.entries.has(key))
  const fields: Record<string, TSchema> = { ...PHASE_FIELDS.standard }
  for (const [key, direction] of LISTS) {
    const handler = handlers[direction]
    if (handler) fields[key] = Type.Optional(entryList(handler.entry))
    else if (node.entries.has(key)) {
      compilation.source.report(node.entries.get(key)!.key, `${takes(node, handlers)}, not \`${key}\``)
      fields[key] = Type.Optional(Type.Any({ 'x-template': true }))
    }
  }
  if (handlers.phase && given.length === 0) {
    refuseTaken(compilation, node, handlers.phase.entry)
    const own = ownFields(handlers.phase.entry)
    const isSure = isKnown(compilation, node)
    // Nobody knows what is missing of an agent that is only the one that was probably meant.
    return closedObject(
      { ...fields, ...(isSure ? own : Type.Partial(Type.Object(own)).properties) },
      handlers.phase.entry,
    )
  }
  if (!handlers.phase && given.length === 0 && isKnown(compilation, node)) {
    const missing = LISTS.filter(([, direction]) => handlers[direction]).map(([key]) => key)
    const what = missing.map(key => `\`${key}\``).join(' or ')
    compilation.source.report({ offset: node.offset, path: `${node.path}/${missing[0]}` }, `${what} is missing`)
  }
  return closedObject(fields)
}

const isKnown = ({ agents }: Compilation, node: Mapping): boolean =>
  agents?.get(agentName(textOf(field(node, 'agent')) ?? '')) !== undefined

/** An own field of an agent that has the name of a field of every phase would never reach the agent. */
function refuseTaken(compilation: Compilation, node: Mapping, entry: TObject): void {
  const taken = Object.keys(entry.properties).filter(key => key !== 'name' && Object.hasOwn(PHASE_FIELDS.standard, key))
  if (taken.length === 0) return
  const which = taken.map(key => `\`${key}\``).join(' and ')
  compilation.source.report(
    field(node, 'agent')!,
    `this agent has ${which} of its own, which every phase has: give it another name in the agent`,
  )
}

function takes(node: Mapping, handlers: Handlers): string {
  const who = textOf(field(node, 'action')) ?? textOf(field(node, 'agent'))
  const list = LISTS.find(([, direction]) => handlers[direction])
  return list ? `\`${who}\` ${list[2]}: it takes \`${list[0]}\`` : `\`${who}\` takes fields on the phase itself`
}

/** Names of entries must differ, because results and files are named after them. */
function checkNames(compilation: Compilation, entries: Node[]): void {
  const seen = new Set<string>()
  for (const entry of entries) {
    const place = field(entry, 'name')
    const name = textOf(place)
    if (name === undefined) continue
    if (seen.has(name)) compilation.source.report(place!, `another entry of this phase is named \`${name}\``)
    seen.add(name)
  }
}

/** Checks that entries of http name agents that have an account, and that the address of the others is one in full. */
function checkAccounts(compilation: Compilation, agent: string, entries: Node[]): void {
  if (!compilation.agents) return
  for (const entry of entries) {
    const [place, url] = [field(entry, 'account'), field(entry, 'url')]
    if (!place && url && textOf(url)?.startsWith('/')) {
      const message = 'expected an address that begins with https:// or http://: only with `account` a path is enough'
      compilation.source.report(url, message)
    }
    const account = textOf(place) ?? ''
    if (place && hasTemplate(account)) {
      const message = 'templates are not read here: whose credential is used stands in the file itself'
      compilation.source.report(place, message)
    } else if (place && accountIn(agent, { account }) !== null) {
      const definition = agentAt(compilation, place)
      if (!definition || definition.account) continue
      compilation.source.report(place, `the agent \`${account}\` has no account for requests of others`)
    }
  }
}
