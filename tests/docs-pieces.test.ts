// Pieces of YAML in the documents that are not whole files: each is valid where it belongs, in settings.yml, or in a team
// that has the phases, inputs and sub-teams which the piece mentions.

import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Glob } from 'bun'
import { parse } from 'yaml'
import { discover } from '../lib/agent/catalogue.ts'
import type { Json, JsonObject } from '../lib/json.ts'
import { checkValue, SECTIONS } from '../lib/settings/key.ts'
import { leavesOf } from '../lib/settings/tree.ts'
import { loadBundle } from '../lib/team/compile/bundle.ts'
import { fencesOf } from './support/fences.ts'
import { folder } from './support/folder.ts'

const DOCUMENTS = ['docs/run-teams.md', 'docs/secrets.md', 'docs/triggers.md', 'docs/write-a-team.md']

const catalogue = await discover({ home: folder() })
const pieces = DOCUMENTS.flatMap(document =>
  fencesOf(document)
    .filter(({ language, words }) => language === 'yaml' && words.length === 0)
    .map(({ text, heading }): [place: string, value: Json, text: string] => [
      `${document}, ${heading}: ${text.trim().split('\n')[0]}`,
      parse(text),
      text,
    ]),
)
const isSettings = (value: Json): value is JsonObject =>
  value !== null && Object.keys(value).every(key => (SECTIONS as readonly string[]).includes(key))

test('there are pieces of both kinds', () => {
  const settings = pieces.filter(([, value]) => isSettings(value))
  expect(settings.length).toBeGreaterThan(4)
  expect(pieces.length - settings.length).toBeGreaterThan(8)
})

test.each(pieces.filter(([, value]) => isSettings(value)))('%s', (_, value) => {
  for (const { path, value: leaf } of leavesOf(value as JsonObject)) {
    expect([path, checkValue(path, leaf, catalogue)]).toEqual([path, leaf])
  }
})

test.each(pieces.filter(([, value]) => !isSettings(value)))('%s', async (_, value, text) => {
  await loadBundle(new Map(Object.entries(filesAround(value, text))), { agents: catalogue })
})

const DOCUMENTS_WITH_TEAMS = ['README.md', ...new Glob('docs/*.md').scanSync(join(import.meta.dir, '..'))]
const named = DOCUMENTS_WITH_TEAMS.flatMap(document => {
  const fences = fencesOf(document).filter(({ language }) => language === 'yaml')
  const there = new Set(fences.map(({ words }) => words[0]))
  return fences.flatMap(({ text, words: [file], heading }) =>
    Array.from(text.matchAll(/\bteam: *["']?(\.{1,2}(?:\/[^\s"',}#]*)?)(?=["'\s,}#]|$)/g), ([, ref]) => {
      return { document, heading, ref: ref!, file, there }
    }),
  )
})

test('there are teams that the documents name by a path', () => expect(named.length).toBeGreaterThan(2))

// A piece that is no whole file may stand in any folder, so any team of this path will do for it.
test.each(named)('the team $ref in $document, $heading, is shown or exists', ({ ref, file, there }) => {
  const folder = file === undefined ? '' : dirname(file)
  const wanted = join(folder, ref, 'team.yml')
  const isShown = [...there].some(each => each === wanted || (file === undefined && each?.endsWith(`/${wanted}`)))
  expect([wanted, isShown || existsSync(join(import.meta.dir, '..', wanted))]).toEqual([wanted, true])
})

/** The files of a team with the piece in it. */
function filesAround(piece: Json, text: string): Record<string, string> {
  const given = Array.isArray(piece) ? { phases: piece } : ((piece ?? {}) as JsonObject)
  const { commands, ...rest } = given
  const { phases = [], inputs = [], triggers = [], ...more } = rest as Record<string, JsonObject[]>
  if (commands) phases.push({ name: 'it', agent: 'exec', commands })
  const mentioned = namesIn(text, /\bphases\.(\w+)|\bfiles\/(\w+)\//g)
  const needed = [...phases.flatMap(({ depends_on = [] }) => depends_on as string[]), ...mentioned, 'other']
  const lacking = new Set(needed.filter(name => phases.every(phase => phase.name !== name)))
  const values = [...namesIn(text, /\binputs\.(\w+)/g), ...triggers.flatMap(({ inputs = {} }) => Object.keys(inputs!))]
  const unknown = new Set(values.filter(name => inputs.every(input => input.name !== name)))
  const team = (name: string, content: object) =>
    JSON.stringify({ name: `@local/${name}`, version: '1.0.0', ...content })
  const others = phases.flatMap(({ team: path, inputs = {} }) => {
    if (typeof path !== 'string') return []
    const taken = Object.entries(inputs!).map(([name, value]) =>
      value === '{{ index }}' ? { name, type: 'number' } : declared(name),
    )
    const content = { inputs: taken, phases: [standIn('it')] }
    return [[`${path.slice('./'.length)}/team.yml`, team('sub', content)]]
  })
  const content = {
    ...more,
    inputs: [...inputs, ...[...unknown].map(declared)],
    phases: [...[...lacking].map(standIn), ...phases],
    triggers,
  }
  return { 'team.yml': team('piece', content), ...Object.fromEntries(others) }
}

const namesIn = (text: string, pattern: RegExp): string[] =>
  Array.from(text.matchAll(pattern), ([, one, other]) => (one ?? other)!)
const standIn = (name: string) => ({ name, agent: 'exec', commands: [{ name: 'do', run: 'true' }] })
const declared = (name: string) => ({ name, type: 'string', default: '' })
