// One phase of team.yml: which type it is, and its fields checked and compiled.

import { compileCall } from './call.ts'
import { checkAgainst, type Draft, defined, duration, isTrue, nothingAt, numberOf, siteOf } from './draft.ts'
import { compileFields } from './fields.ts'
import { field, itemsOf, type Mapping, type Node, type Place, textOf } from './node.ts'
import { closedObject, PHASE_FIELDS, type PhaseKind } from './schema.ts'
import type { Command, GatePhase, MapPhase, Phase, Review, StandardPhase, TeamPhase } from './team.ts'
import { compileExpression, compileTemplate, constant } from './template.ts'

/** A phase that starts sub-runs: what it passes, to be checked against what the sub-team declares. */
export interface SubCall {
  phase: string
  ref: string
  place: Place
  inputs: Mapping
  /** Inputs of the sub-team that get a secret of this one. */
  secrets: { input: string; secret: string; place: Place }[]
}

const BACKOFF = 2_000
const MAP_CONCURRENCY = 16

const SCHEMAS = {
  gate: closedObject(PHASE_FIELDS.gate),
  team: closedObject(PHASE_FIELDS.team),
  map: closedObject(PHASE_FIELDS.map),
}

/** The type of a phase; where it is not written, what its fields tell. */
export function kindOfPhase(draft: Draft, node: Mapping): PhaseKind {
  const type = textOf(field(node, 'type'))
  if (node.entries.has('notify')) return 'listener'
  if (type === 'gate' || type === 'team' || type === 'map') return type
  if (node.entries.has('type') || node.entries.has('agent')) return 'standard'
  const told = node.entries.has('team')
    ? node.entries.has('items')
      ? 'map'
      : 'team'
    : node.entries.has('review')
      ? 'gate'
      : null
  if (!told) return 'standard'
  draft.source.report({ offset: node.offset, path: `${node.path}/type` }, `\`type: ${told}\` is missing`)
  return told
}

type Own<P extends Phase> = Omit<P, Exclude<keyof Phase, 'type'>>

/** Everything but listeners. Positions of dependencies are filled in by the graph. */
export function compilePhase(
  draft: Draft,
  node: Mapping,
  kind: PhaseKind,
  at: { name: string; index: number },
  calls: SubCall[],
): Phase {
  const { name, index } = at
  const base = compileBase(draft, node, name, index)
  switch (kind) {
    case 'gate':
      return { ...base, ...compileGate(draft, node, name) }
    case 'team':
      return { ...base, ...compileTeamPhase(draft, node, name, calls) }
    case 'map':
      return { ...base, ...compileMap(draft, node, name, calls) }
    default:
      return { ...base, type: 'standard', ...compileCall(draft, node, name) } satisfies StandardPhase
  }
}

function compileBase(draft: Draft, node: Mapping, name: string, index: number): Omit<Phase, 'type'> {
  const when = field(node, 'when')
  const retry = field(node, 'retry')
  const onFailure = textOf(field(node, 'on_failure'))
  return {
    name,
    index,
    place: draft.source.place(node.offset),
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
      when:
        when?.kind === 'scalar' && when.value !== null
          ? compileExpression(when, siteOf(draft, name), ['bool'], '`when` must give a bool')
          : undefined,
    }),
  }
}

function compileGate(draft: Draft, node: Mapping, name: string): Own<GatePhase> {
  checkAgainst(draft, node, SCHEMAS.gate)
  const review = field(node, 'review')
  const env = field(node, 'env')
  if (!node.entries.has('commands') && !review) {
    draft.source.report(node, 'a gate needs `commands`, a `review`, or both')
  }
  return {
    type: 'gate',
    commands: itemsOf(field(node, 'commands')).map(command => compileCommand(draft, command, name)),
    env: env ? compileTemplate(env, siteOf(draft, name)) : constant({}),
    ...(review?.kind === 'map' && { review: compileReview(draft, review, name) }),
  }
}

function compileCommand(draft: Draft, node: Node, phase: string): Command {
  const site = siteOf(draft, phase)
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

function compileReview(draft: Draft, node: Mapping, phase: string): Review {
  const prompt = field(node, 'prompt')
  const reviewers = itemsOf(field(node, 'reviewers')).flatMap(each => textOf(each) ?? [])
  return {
    prompt: prompt ? compileTemplate(prompt, siteOf(draft, phase)) : constant(''),
    reviewers: reviewers.length > 0 ? reviewers : ['any'],
    inputs: compileFields(draft.source, field(node, 'inputs')),
    ...defined({ timeout: duration(field(node, 'timeout')) }),
  }
}

function compileTeamPhase(draft: Draft, node: Mapping, name: string, calls: SubCall[]): Own<TeamPhase> {
  checkAgainst(draft, node, SCHEMAS.team)
  return { type: 'team', ...compileSubTeam(draft, node, name, calls, false) }
}

function compileMap(draft: Draft, node: Mapping, name: string, calls: SubCall[]): Own<MapPhase> {
  checkAgainst(draft, node, SCHEMAS.map)
  const items = field(node, 'items')
  const key = field(node, 'key')
  const site = siteOf(draft, name)
  const alone = items?.kind === 'scalar' && typeof items.value === 'string' && items.value.startsWith('{{')
  if (alone) compileExpression(items, { ...site, used: () => undefined }, ['list'], '`items` must give a list')
  return {
    type: 'map',
    ...compileSubTeam(draft, node, name, calls, true),
    items: items ? compileTemplate(items, site) : constant([]),
    ...(key && { key: compileTemplate(key, siteOf(draft, name, { item: true })) }),
    concurrency: numberOf(field(node, 'concurrency')) ?? MAP_CONCURRENCY,
    onItemFailure: textOf(field(node, 'on_item_failure')) === 'continue' ? 'continue' : 'stop',
  }
}

function compileSubTeam(draft: Draft, node: Mapping, name: string, calls: SubCall[], item: boolean) {
  const place = field(node, 'team')
  const ref = textOf(place)
  const given = field(node, 'inputs')
  const inputs = given?.kind === 'map' ? given : nothingAt({ offset: node.offset, path: `${node.path}/inputs` })
  const secrets: SubCall['secrets'] = []
  const onInput = (secret: string, at: Place): void => {
    const input = at.path.slice(inputs.path.length + 1).split('/', 1)[0]!
    const named = secret === '*' ? [...draft.secrets] : draft.secrets.has(secret) ? [secret] : []
    for (const each of named) secrets.push({ input, secret: each, place: at })
  }
  const template = compileTemplate(inputs, siteOf(draft, name, { item, onInput }))
  if (place && ref !== undefined) calls.push({ phase: name, ref, place, inputs, secrets })
  return { team: ref === undefined ? '' : (draft.refs[ref] ?? ref), inputs: template }
}
