// Declared inputs of a team or of a review's form. Their defaults and choices must have the declared type, and are the
// same in every run: templates are not read in them.

import type { Json } from '../../json.ts'
import { nameMeant } from '../../text/spelling.ts'
import { FIELD_TYPES } from '../../wire/records/forms.ts'
import { templateIn } from '../cel/cel.ts'
import { type Field, type FieldType, problemWith } from '../model/model.ts'
import type { Source } from '../yaml/yaml.ts'
import { field, itemsOf, type Node, textOf, toJson } from '../yaml/yaml.ts'
import { isTrue } from './compilation.ts'
import { OTHER_TYPES } from './other-fields.ts'

const IN_DEFAULT =
  'templates are not read in `default`: write the value itself; or leave `default` out, and write what there is without a value where it is used: `{{ x == null ? … : x }}`'
const IN_CHOICES = 'templates are not read in `choices`: write each choice itself, or leave `choices` out'

export function compileFields(source: Source, list: Node | undefined): Field[] {
  const seen = new Set<string>()
  return itemsOf(list).flatMap(node => {
    const compiled = compileField(source, node)
    if (!compiled) return []
    if (seen.has(compiled.name)) source.report(field(node, 'name')!, `another input is named \`${compiled.name}\``)
    seen.add(compiled.name)
    return [compiled]
  })
}

/** The type, or the one that was probably meant. */
export function typeOf(node: Node | undefined): FieldType {
  return meantBy(node) ?? 'string'
}

function meantBy(node: Node | undefined): FieldType | undefined {
  const name = nameMeant(textOf(node) ?? '', FIELD_TYPES, OTHER_TYPES)
  return FIELD_TYPES.find(type => type === name)
}

function compileField(source: Source, node: Node): Field | null {
  const name = textOf(field(node, 'name'))
  if (name === undefined) return null
  const given = field(node, 'type')
  const type = typeOf(given)
  const isClear = !given || meantBy(given) !== undefined
  const description = textOf(field(node, 'description'))
  const defaultNode = field(node, 'default')
  const choiceNodes = itemsOf(field(node, 'choices'))
  const choices = choiceNodes.map(toJson)
  const secret = isTrue(field(node, 'secret'))
  const isLiteral = (literal: Node, otherwise: string): boolean => {
    const template = templateIn(literal)
    if (template) source.report(template, otherwise)
    return template === null
  }
  for (const [at, choice] of choices.entries()) {
    if (isLiteral(choiceNodes[at]!, IN_CHOICES) && isClear) report(source, choiceNodes[at]!, choice, type)
  }
  if (defaultNode && isLiteral(defaultNode, IN_DEFAULT) && isClear) {
    report(source, defaultNode, toJson(defaultNode), type, choices)
  }
  if (secret && isClear && type !== 'string')
    source.report(field(node, 'secret')!, `a secret input must be of type string, not ${type}`)
  if (secret && defaultNode)
    source.report(defaultNode, 'a secret input must not have a default, which would be readable in the file')
  return {
    name,
    type,
    required: isTrue(field(node, 'required')),
    secret,
    ...(defaultNode && { default: toJson(defaultNode) }),
    ...(choices.length > 0 && { choices }),
    ...(description !== undefined && { description }),
  }
}

function report(source: Source, node: Node, value: Json, type: FieldType, choices: Json[] = []): void {
  const problem = problemWith(value, { type, required: false, secret: false, ...(choices.length > 0 && { choices }) })
  if (problem) source.report(node, problem)
}
