// Compiles `concurrency` of a team: how many phases of one run may run at once, and the key that its runs hold, with how
// many may hold it and what becomes of the others. The key is known before a run begins, so it can name nothing but the
// inputs and the environment.

import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { matches } from '../../schema/schema.ts'
import { type ConcurrencyKey, KEY_DEFAULTS, MAX_KEY } from '../../wire/concurrency.ts'
import { compileTemplate, type Site } from '../cel/cel.ts'
import type { HeldKey } from '../model/model.ts'
import { field, type Node, readYaml, Source, textOf, toJson } from '../yaml/yaml.ts'
import { type Compilation, numberOf, siteOf } from './compilation.ts'
import { ConcurrencySchema } from './team-schema.ts'

const ONLY_INPUTS = 'a key is needed before the run begins, so it can name only `inputs` and `run.environment`'

/** The node was checked against its schema before. */
export function compileConcurrency(
  compilation: Compilation,
  node: Node | undefined,
): { concurrency: number | null; key: HeldKey | null } {
  if (node?.kind !== 'map') return { concurrency: numberOf(node) ?? null, key: null }
  const concurrency = numberOf(field(node, 'phases')) ?? null
  const template = field(node, 'key')
  const written = toJson(node)
  if (!template || !matches(ConcurrencySchema, written) || typeof written === 'number') {
    return { concurrency, key: null }
  }
  const { secrets, source } = compilation
  const site = siteOf(compilation, null, {
    onInput(name, place) {
      const secret = name === '*' ? [...secrets][0] : secrets.has(name) ? name : undefined
      if (secret === undefined) return
      source.report(place, `input \`${secret}\` is secret, and everybody who sees the run sees its key`)
    },
  })
  return { concurrency, key: heldKey(template, site, { ...KEY_DEFAULTS, ...written }) }
}

/** The key of a team as a hub stores it. `names` are the inputs of the team. */
export function keyFrom(declared: ConcurrencyKey, names: readonly string[]): HeldKey {
  const source = new Source('concurrency.key', JSON.stringify({ key: declared.key }))
  const known = { phases: new Set<string>(), inputs: new Set(names), item: false }
  const site: Site = { source, names: known, files: new Set(), used: () => {} }
  const template = field(readYaml(source) ?? undefined, 'key')
  const key = template && textOf(template) !== undefined ? heldKey(template, site, declared) : null
  const [problem] = source.problems
  if (key && !problem) return key
  throw new CadreError(
    'invalid_request',
    `the key of \`concurrency\` cannot be read: ${problem?.message ?? declared.key}`,
  )
}

function heldKey(node: Node, site: Site, { key, limit, when_full }: ConcurrencyKey): HeldKey {
  const template = compileTemplate(node, {
    ...site,
    names: { ...site.names, only: { roots: ['inputs', 'run.environment'], why: ONLY_INPUTS } },
  })
  return {
    source: key,
    limit,
    whenFull: when_full,
    of: (inputs, environment) => keyText(template.evaluate(scopeOf(inputs, environment)), template.place),
  }
}

function keyText(value: unknown, place: string): string {
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
  const what = faultOf(text)
  if (what === null) return text as string
  throw new CadreError(
    'invalid_request',
    `${place}: the key of \`concurrency\` must be text of 1 to ${MAX_KEY} characters, but with these inputs it ${what}`,
    { details: [{ path: '/inputs', message: `the key of \`concurrency\` ${what}` }] },
  )
}

/** PostgreSQL stores no NUL in text. */
function faultOf(text: unknown): string | null {
  if (typeof text !== 'string') return 'is not text'
  if (text === '') return 'is empty'
  if (text.length > MAX_KEY) return 'is longer'
  return text.includes('\0') ? 'has a NUL character' : null
}

const scopeOf = (inputs: JsonObject, environment: string | null) => ({
  inputs,
  run: { id: '', name: null, started_at: null, environment },
  phase: () => {
    throw new CadreError('internal', ONLY_INPUTS)
  },
})
