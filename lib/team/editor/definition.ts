// Where a name is declared: a phase, an input, a sub-team.

import type { Node } from '../yaml/yaml.ts'
import { field } from '../yaml/yaml.ts'
import type { Around } from './around.ts'
import { meaningAt } from './meaning.ts'
import { type Range, rangeOf } from './place.ts'

/** `file` is null for the file itself, else absolute, with its text. */
export type Definition = Range & { file: string | null; text: string }

export function definition(text: string, offset: number, around: Around): Definition | null {
  const meaning = meaningAt(text, offset, around)
  switch (meaning?.about) {
    case 'phase':
      return { file: null, text, ...nameRange(meaning.phase.node) }
    case 'input':
      return { file: null, text, ...nameRange(meaning.input.node) }
    case 'team': {
      const { file, text: other, root } = meaning.team
      return { file, text: other, ...nameRange(root) }
    }
    case 'input-of-team':
      return { file: meaning.team.file, text: meaning.team.text, ...nameRange(meaning.input.node) }
    default:
      return null
  }
}

/** The range of what names a phase, an input or a team; the beginning of one without a name. */
function nameRange(node: Node): Range {
  const name = field(node, 'name')
  return name?.kind === 'scalar' ? rangeOf(name) : { from: node.offset, to: node.offset }
}
