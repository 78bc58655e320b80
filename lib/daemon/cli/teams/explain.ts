// `explain FIELD`: what a field of team.yml is, from the schema of team.yml.

import { discover } from '../../../agent/catalogue.ts'
import { commandLine } from '../../../program/called-as.ts'
import { type Explained, explainField } from '../../../team/team.ts'
import { createPaint, line, lines, nothing, type Paint, type Printable } from '../../../text/printable.ts'
import { print, printJson } from '../../../text/terminal.ts'
import { homeFolder } from '../../home/home.ts'
import { table } from '../terminal/table.ts'

/** A field with more forms than these, such as `sources`, is shown as a list of them. */
const MOST_FORMS = 3

/** Throws `invalid_request` for a field that does not exist, with those near it. */
export async function explain(field = '', { home, json }: { home?: string; json?: boolean }): Promise<void> {
  const agents = await discover({ home: homeFolder(home), extra: process.env.CADRE_AGENTS })
  const forms = explainField(agents, field)
  if (json) return printJson({ field, forms })
  const paint = createPaint(process.stdout)
  print(paint.bold(field || 'team.yml'))
  if (forms.length > MOST_FORMS) print(nothing, manyForms(forms))
  else for (const form of forms) print(nothing, oneForm(form, paint))
}

function oneForm(form: Explained, paint: Paint): Printable[] {
  const { of, description, value, required, example, fields } = form
  const notes = [
    ...(of.length > 0 ? [['in phases with', of.join('; ')]] : []),
    ['value', value],
    ...(form.default === undefined ? [] : [['default', shown(form.default)]]),
    ...(required ? [['required', 'yes']] : []),
  ]
  return [
    ...(description ? [line`  ${description}`, nothing] : []),
    ...table(notes.map(([name, text]) => [`  ${name}`, text!])),
    ...(example === undefined ? [] : [nothing, line`  example:`, ...indented(example)]),
    ...(fields.length === 0 ? [] : [nothing, line`  fields:`, ...table(fields.map(each => rowOf(each, paint)))]),
  ]
}

const indented = (text: string): Printable[] => lines(text.trimEnd()).map(each => line`    ${each}`)

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

function rowOf({ name, of, required, value, description }: Explained['fields'][number], paint: Paint) {
  const where = of.length > MOST_FORMS ? `${of.length} kinds of phases` : of.join('; ')
  const more = [where, description].filter(Boolean).join(': ')
  return [`    ${name}${required ? ' *' : ''}`, value.length > 40 ? `${value.slice(0, 39)}…` : value, paint.dim(more)]
}

function manyForms(forms: readonly Explained[]): Printable[] {
  const rows = forms.flatMap(({ of, description, value }) => of.map(each => [`  ${each}`, description || value]))
  return [...table(rows), nothing, line`  The manual of an agent has more: ${commandLine('agents', 'NAME')}`]
}
