// What is said of a place of the file: of a field the words of the schema, as `explain` has them; of an agent and an action a
// summary of their manual.

import type { TSchema } from 'typebox'
import type { AgentDefinition, Handler } from '../../agent/define.ts'
import { named } from '../../text/unseen.ts'
import { field, type Node, textOf } from '../yaml/yaml.ts'
import type { Around } from './around.ts'
import { type Explained, explainPlace } from './explain.ts'
import { type Meaning, meaningAt } from './meaning.ts'
import { inputWords, namesAfter, phaseWords } from './names.ts'
import type { Range } from './place.ts'
import { inputsOf } from './scope.ts'

/** `text` is Markdown of paragraphs, lists and code, which can be read as it is, too. */
export type Hover = Range & { text: string }

export function hover(text: string, offset: number, around: Around): Hover | null {
  const meaning = meaningAt(text, offset, around)
  const words = meaning && wordsOf(meaning, around)
  return words ? { text: words, from: meaning.from, to: meaning.to } : null
}

function wordsOf(meaning: Meaning, around: Around): string | null {
  const { agents, schema, settings } = around
  switch (meaning.about) {
    case 'field': {
      const form = explainPlace(schema, meaning.root, meaning.path)
      return form && fieldWords(meaning.path.at(-1), form)
    }
    case 'agent': {
      const [name = ''] = meaning.agent.split('@', 1)
      const definition = agents.names().includes(name) ? agents.get(name) : undefined
      return definition ? agentWords(name, definition) : null
    }
    case 'action': {
      const [name = ''] = meaning.agent.split('@', 1)
      const { actions = {} } = (agents.names().includes(name) && agents.get(name)) || {}
      const handler = Object.hasOwn(actions, meaning.action) ? actions[meaning.action] : undefined
      return handler ? actionWords(meaning.action, handler) : null
    }
    case 'phase':
      return paragraphs(`phase \`${meaning.phase.name}\``, code(phaseWords(meaning.phase.node)))
    case 'input':
      return inputText(meaning.input)
    case 'input-of-team':
      return paragraphs(inputText(meaning.input), `of ${teamName(meaning.team.root)}`)
    case 'team': {
      const { root } = meaning.team
      const inputs = inputsOf(root).map(({ name, node }) => `- \`${name}\`: ${plain(inputWords(node))}`)
      return paragraphs(teamName(root), plain(textOf(field(root, 'description')) ?? ''), inputs.join('\n'))
    }
    case 'secret': {
      const there = settings.secrets.includes(meaning.name)
      return `the secret \`${plain(meaning.name)}\`, which is ${there ? 'set' : 'not set'} in settings.yml of this machine`
    }
    case 'name': {
      const known = namesAfter(around, meaning.root, meaning.path, meaning.above)
      return plain(known.find(({ name }) => name === meaning.name)?.words ?? '') || null
    }
  }
}

function fieldWords(name: string | number | undefined, form: Explained): string {
  const { description, value, required, example, fields } = form
  const notes = [
    value,
    ...(required ? ['required'] : []),
    ...(form.default === undefined ? [] : [`default ${JSON.stringify(form.default)}`]),
  ]
  const below = fields.length > 0 ? `Fields: ${fields.map(each => `\`${each.name}\``).join(', ')}` : ''
  return paragraphs(`\`${name}\`: ${notes.join(', ')}`, description, below, example ? fence(example) : '')
}

function agentWords(name: string, { description, version, actions = {} }: AgentDefinition): string {
  const list = Object.entries(actions).map(([action, each]) => `- \`${action}\`: ${each.description ?? effectOf(each)}`)
  return paragraphs(`agent \`${name}\` ${version}`, description, list.join('\n'))
}

function actionWords(name: string, handler: Handler): string {
  const { properties, required = [] }: { properties: Record<string, TSchema>; required?: string[] } = handler.entry
  const fields = Object.entries(properties).map(([field, schema]) => {
    const { description = '' } = schema as { description?: string }
    return `- \`${field}\`${required.includes(field) ? ' (required)' : ''}: ${description}`
  })
  return paragraphs(`\`${name}\` (${effectOf(handler)})`, handler.description ?? '', fields.join('\n'))
}

const effectOf = ({ effect }: Handler): string => (typeof effect === 'function' ? 'effect by entry' : effect)

const inputText = ({ name, node }: { name: string; node: Node }): string =>
  paragraphs(`input \`${name}\``, plain(inputWords(node)))

const teamName = (root: Node): string =>
  code(`${textOf(field(root, 'name')) ?? 'a team'}@${textOf(field(root, 'version')) ?? '?'}`)

const paragraphs = (...all: readonly string[]): string => all.filter(Boolean).join('\n\n')
const fence = (yaml: string): string => `\`\`\`yaml\n${yaml.trimEnd()}\n\`\`\``
const code = (text: string): string => (text ? `\`${named(text).replaceAll(/[`\n]/g, ' ')}\`` : '')

/** What somebody wrote in a file, so that it is shown as it stands: neither a link nor an unseen character does anything. */
const plain = (text: string): string => named(text).replaceAll(/[\\`*_{}[\]<>#|~]/g, found => `\\${found}`)
