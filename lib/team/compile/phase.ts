// Compiles one phase of team.yml: finds its type, and checks and compiles its fields.

import { nameMeant } from '../../text/spelling.ts'
import { PHASE_TYPES } from '../../wire/states.ts'
import { compileExpression, compileTemplate, constant } from '../cel/cel.ts'
import type {
  BeginLimit,
  Command,
  GatePhase,
  MapPhase,
  Phase,
  Review,
  StandardPhase,
  TeamPhase,
} from '../model/model.ts'
import { field, itemsOf, type Mapping, type Node, type Place, textOf } from '../yaml/yaml.ts'
import { agentName, compileCall } from './agent-call.ts'
import {
  type Compilation,
  checkAgainst,
  defined,
  duration,
  isTrue,
  nothingAt,
  numberOf,
  only,
  type SubCall,
  siteOf,
} from './compilation.ts'
import { compileFields } from './fields.ts'
import { isInPlace, keyInPlace, mapOnly, withoutOwn } from './in-place.ts'
import { closedObject, PHASE_FIELDS } from './phase-schema.ts'
import { compileRepeat, refuseOnce } from './repeat.ts'

const BACKOFF = 2_000
const MAP_CONCURRENCY = 16

const { team: _, ...inPlace } = PHASE_FIELDS.map
const { phases: __, outputs: ___, ...ofTeam } = PHASE_FIELDS.map

const SCHEMAS = {
  gate: closedObject(PHASE_FIELDS.gate),
  team: closedObject(PHASE_FIELDS.team),
  map: closedObject({ ...ofTeam, ...PHASE_FIELDS.team }),
  inPlace: closedObject(inPlace),
}

type Own<P extends Phase> = Omit<P, Exclude<keyof Phase, 'type' | 'isLeaf'>>
type Compile<P extends Phase> = (compilation: Compilation, node: Mapping, name: string) => Own<P>

const COMPILE: { readonly [T in Phase['type']]: Compile<Extract<Phase, { type: T }>> } = {
  standard: compileStandard,
  gate: compileGate,
  team: compileTeamPhase,
  map: compileMap,
}

const isType = (text: string | undefined): text is Phase['type'] => text !== undefined && Object.hasOwn(COMPILE, text)

/**
 * The type of a phase, or the one that was probably meant, so that what else is wrong is found too. Where it is missing but
 * the fields show it, this is reported.
 */
export function typeOfPhase(compilation: Compilation, node: Mapping): Phase['type'] | 'listener' {
  if (node.entries.has('notify')) return 'listener'
  const type = textOf(field(node, 'type')) ?? ''
  if (isType(type)) return type
  if (node.entries.has('agent') && !isMapOfAgent(compilation, node)) return 'standard'
  const meant = nameMeant(type, PHASE_TYPES)
  if (isType(meant)) return meant
  const implied =
    node.entries.has('phases') || node.entries.has('agent')
      ? 'map'
      : node.entries.has('team')
        ? node.entries.has('items')
          ? 'map'
          : 'team'
        : node.entries.has('review')
          ? 'gate'
          : null
  if (!implied) return 'standard'
  if (!node.entries.has('type'))
    compilation.source.report({ offset: node.offset, path: `${node.path}/type` }, `\`type: ${implied}\` is missing`)
  return implied
}

/** Whether a phase that has an agent is a map by its `items`, which the agent does not take. */
function isMapOfAgent({ agents }: Compilation, node: Mapping): boolean {
  const definition = node.entries.has('items') && agents?.get(agentName(textOf(field(node, 'agent')) ?? ''))
  if (!definition) return false
  const handlers = [definition.phase, ...Object.values(definition.actions ?? {})]
  return !handlers.some(handler => handler && 'items' in handler.entry.properties)
}

/** Compiles any phase except a listener. The graph fills in the positions of dependencies. */
export function compilePhase(
  compilation: Compilation,
  node: Mapping,
  type: Phase['type'],
  at: { name: string; index: number },
): Phase {
  const { name, index } = at
  const own = type === 'map' ? withoutOwn(node) : node
  return { ...compileBase(compilation, own, name, index), ...COMPILE[type](compilation, node, name) }
}

function compileBase(
  compilation: Compilation,
  node: Mapping,
  name: string,
  index: number,
): Omit<Phase, 'type' | 'isLeaf'> {
  const when = field(node, 'when')
  const retry = field(node, 'retry')
  const onFailure = textOf(field(node, 'on_failure'))
  return {
    name,
    index,
    place: compilation.source.place(node.offset),
    dependsOn: [],
    dependants: [],
    always: isTrue(field(node, 'always')),
    onFailure: onFailure === 'continue' || onFailure === 'escalate' ? onFailure : 'fail',
    retry: {
      attempts: numberOf(field(retry, 'attempts')) ?? 1,
      backoff: duration(field(retry, 'backoff')) ?? BACKOFF,
    },
    ...defined({
      timeout: duration(field(node, 'timeout')),
      repeat: compileRepeat(compilation, node, name),
      limit: compileLimit(compilation, field(node, 'limit')),
      when:
        when?.kind === 'scalar' && when.value !== null
          ? compileExpression(when, siteOf(compilation, name), ['bool'], '`when` must give a bool')
          : undefined,
    }),
  }
}

function compileLimit({ source }: Compilation, node: Node | undefined): BeginLimit | undefined {
  const time = field(node, 'per')
  const count = numberOf(field(node, 'count'))
  const per = duration(time)
  if (time && per === 0) source.report(time, 'a limit needs a time above 0')
  return count !== undefined && per !== undefined ? { count, per } : undefined
}

function compileStandard(compilation: Compilation, node: Mapping, name: string): Own<StandardPhase> {
  const call = compileCall(compilation, node, name)
  refuseOnce(compilation, node, call)
  return { type: 'standard', isLeaf: true, ...call }
}

function compileGate(compilation: Compilation, node: Mapping, name: string): Own<GatePhase> {
  const commands = itemsOf(field(node, 'commands')).map(command => compileCommand(compilation, command, name))
  const given = field(node, 'env')
  const env = given ? compileTemplate(given, siteOf(compilation, name, { secrets: true })) : constant({})
  // The prompt comes later, because whatever its template gives becomes a text.
  checkAgainst(compilation, node, SCHEMAS.gate)
  const review = field(node, 'review')
  if (!node.entries.has('commands') && !review) {
    compilation.source.report(node, 'a gate needs `commands`, a `review`, or both')
  }
  refuse(
    compilation,
    node,
    'retry',
    'a gate cannot be retried: put its commands into an `exec` phase with `retry` before it',
  )
  refuse(compilation, node, 'repeat', 'a gate cannot be repeated: put its commands into an `exec` phase before it')
  if (!node.entries.has('commands')) {
    refuse(compilation, node, 'timeout', 'a gate without `commands` runs nothing: write `timeout` inside `review`')
  }
  return {
    type: 'gate',
    isLeaf: commands.length > 0,
    commands,
    env,
    needs: itemsOf(field(node, 'needs')).flatMap(each => textOf(each) ?? []),
    ...(review?.kind === 'map' && { review: compileReview(compilation, review, name) }),
  }
}

function refuse(compilation: Compilation, node: Mapping, key: string, message: string): void {
  const entry = node.entries.get(key)
  if (entry) compilation.source.report(entry.key, message)
}

function compileCommand(compilation: Compilation, node: Node, phase: string): Command {
  const site = siteOf(compilation, phase, { secrets: true })
  const run = field(node, 'run')
  const env = field(node, 'env')
  return {
    name: textOf(field(node, 'name')) ?? '',
    run: run ? String(compileTemplate(run, site).constant ?? '') : '',
    env: env ? compileTemplate(env, site) : constant({}),
    effect: textOf(field(node, 'effect')) === 'once' ? 'once' : 'idempotent',
    ...defined({ timeout: duration(field(node, 'timeout')) }),
  }
}

const isNo = (node: Node | undefined): boolean => node?.kind === 'scalar' && node.value === false

function compileReview(compilation: Compilation, node: Mapping, phase: string): Review {
  const prompt = field(node, 'prompt')
  const reviewers = itemsOf(field(node, 'reviewers')).flatMap(each => textOf(each) ?? [])
  return {
    prompt: prompt ? compileTemplate(prompt, siteOf(compilation, phase)) : constant(''),
    reviewers: reviewers.length > 0 ? reviewers : ['any'],
    inputs: compileFields(compilation.source, field(node, 'inputs')),
    ...defined({ timeout: duration(field(node, 'timeout')) }),
    ...(isNo(field(node, 'share')) && { share: false as const }),
  }
}

function compileTeamPhase(compilation: Compilation, node: Mapping, name: string): Own<TeamPhase> {
  checkAgainst(compilation, node, SCHEMAS.team)
  return { type: 'team', isLeaf: false, concurrency: 1, ...compileSubTeam(compilation, node, name, false) }
}

function compileMap(compilation: Compilation, node: Mapping, name: string): Own<MapPhase> {
  checkMap(compilation, node)
  const items = field(node, 'items')
  const key = field(node, 'key')
  const site = siteOf(compilation, name)
  const alone = items?.kind === 'scalar' && typeof items.value === 'string' && items.value.startsWith('{{')
  if (alone) compileExpression(items, { ...site, used: () => undefined }, ['list'], '`items` must give a list')
  return {
    type: 'map',
    isLeaf: false,
    // What a map in place passes is known once its phases are compiled.
    ...(isInPlace(node)
      ? { team: keyInPlace(compilation.key, name), inputs: constant({}) }
      : compileSubTeam(compilation, node, name, true)),
    items: items ? compileTemplate(items, site) : constant([]),
    ...(key && { key: compileTemplate(key, siteOf(compilation, name, { item: true })) }),
    concurrency: numberOf(field(node, 'concurrency')) ?? MAP_CONCURRENCY,
    onItemFailure: textOf(field(node, 'on_item_failure')) === 'continue' ? 'continue' : 'stop',
  }
}

function checkMap(compilation: Compilation, node: Mapping): void {
  if (isInPlace(node)) {
    const own = mapOnly(node)
    refuse(compilation, own, 'team', '`team` and `phases` exclude each other: a map has one of them')
    const both = '`agent` and `phases` exclude each other: put the agent into a phase of `phases`'
    refuse(compilation, own, 'agent', both)
    refuse(compilation, own, 'retry', 'a map cannot be retried as a whole: put `retry` on its phases')
    refuse(compilation, own, 'repeat', 'a map cannot be repeated: put `repeat` on its phases')
    const known = only(withoutOwn(own), key => key !== 'agent')
    return checkAgainst(compilation, known, SCHEMAS.inPlace)
  }
  refuse(compilation, node, 'repeat', 'a map cannot be repeated: repeat a `team` phase whose team has the map')
  if (node.entries.has('team')) return checkAgainst(compilation, node, SCHEMAS.map)
  const place = { offset: node.offset, path: `${node.path}/phases` }
  compilation.source.report(
    place,
    '`phases` is missing: what is done with each item (or `team`, a folder or a package that does it)',
  )
  checkAgainst(compilation, node, SCHEMAS.inPlace)
}

function compileSubTeam(compilation: Compilation, node: Mapping, name: string, item: boolean) {
  const place = field(node, 'team')
  const ref = textOf(place)
  const given = field(node, 'inputs')
  const inputs = given?.kind === 'map' ? given : nothingAt({ offset: node.offset, path: `${node.path}/inputs` })
  const secrets: SubCall['secrets'] = []
  refuse(
    compilation,
    node,
    'retry',
    'a sub-team cannot be retried as a whole: put `retry` on the phases of the sub-team',
  )
  const onInput = (secret: string, at: Place): void => {
    const input = at.path.slice(inputs.path.length + 1).split('/', 1)[0]!
    const named = secret === '*' ? [...compilation.secrets] : compilation.secrets.has(secret) ? [secret] : []
    for (const each of named) secrets.push({ input, secret: each, place: at })
  }
  const template = compileTemplate(inputs, siteOf(compilation, name, { item, onInput }))
  if (place && ref !== undefined) {
    compilation.calls.push({ phase: name, ref, place, inputs, givens: compilation.givens, secrets })
  }
  return { team: ref === undefined ? '' : (compilation.refs[ref] ?? ref), inputs: template }
}
