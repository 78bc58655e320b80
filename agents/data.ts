// data: filters, reshapes, splits, joins and compares lists, makes texts of templates, and converts CSV and JSON.
//
//   filter        { name, items or file, where, inputs? }            the items for which `where` is true
//   pick          { name, items or file, fields, where?, inputs? }   objects with these fields only
//   split         { name, items or file, count }                     files of at most `count` items, for a map
//   join          { name, files or lists }                           one list of several
//   template      { name, text or template, items? or file?, inputs? }   a text, also one part for each item
//   csv_to_json   { name, file, delimiter? }
//   json_to_csv   { name, items or file, columns?, delimiter? }
//   diff          { name, key, before or before_file, after or after_file }   what was added, removed and changed
//
// A list is a value (`items`) or a file (`file`) of the run or the workspace; the name of a file says its form: .csv, .jsonl and
// .ndjson (a JSON value a line), anything else is a JSON list, or an object whose field `at` is one. CSV and lines are read and
// written piece by piece, so they may be of any size; JSON is read as a whole, up to 64 MiB. `where`, `key`, and the values of
// `fields` are CEL over `item`, `index` and the `inputs` of the entry. Nothing leaves the machine.
// https://www.rfc-editor.org/rfc/rfc4180

import { type AgentContext, AgentError, agent, entryOf, type Json, type JsonObject, readText, Type } from 'cadre'
import {
  changesBetween,
  filePath,
  filtered,
  type Given,
  grouped,
  picked,
  recordsIn,
  writeList,
  writeRecords,
  writeTexts,
} from 'cadre/vendors'

type Context = AgentContext<unknown>
type Evaluate = ReturnType<Context['expression']>

/** The most files that a list is split into. */
const MOST_FILES = 1_000
const TEMPLATE_BYTES = 1024 * 1024

const text = (description: string) => Type.Optional(Type.String({ minLength: 1, description }))
const expression = (description: string) =>
  Type.String({
    minLength: 1,
    description,
    'x-literal': 'pass the value as one of `inputs`, and write inputs.NAME here',
    'x-item-expression': true,
  })
const items = Type.Optional(Type.Array(Type.Unknown(), { description: 'The list as a value.' }))
const file = Type.Optional(filePath('The file with the list: .csv, .jsonl, .ndjson or JSON.'))
const at = text('Which field of a JSON file is the list, such as data.tasks.')
const delimiter = Type.Optional(
  Type.String({
    pattern: '^[^"\\r\\n]$',
    'x-expected': 'one character, such as ;',
    description: 'What separates the fields of CSV; a comma if it is left out.',
  }),
)
const columns = Type.Optional(
  Type.Array(Type.String({ minLength: 1 }), {
    minItems: 1,
    description: 'The columns of CSV, also as owner.email; those of the first item if left out.',
  }),
)
const inputs = Type.Optional(
  Type.Record(Type.String(), Type.Unknown(), { description: 'Values that expressions name as inputs.NAME.' }),
)
const list = { items, file, at, delimiter }
const oneOf = (...names: string[]) => ({ oneOf: names.map(name => ({ required: [name] })) })

const Listed = {
  items: Type.Array(Type.Unknown(), { description: 'The items, as many as fit; the file has all of them.' }),
  total: Type.Integer({ description: 'How many items there are.' }),
  truncated: Type.Boolean({ description: 'Whether there are more than `items` has.' }),
}
const Part = Type.Object({
  name: Type.String({ description: 'The name of the file.' }),
  path: Type.String({ description: 'Its path, for a `file` of later phases.' }),
  items: Type.Integer({ description: 'How many items it has.' }),
})
const Change = Type.Object({
  change: Type.Enum(['added', 'removed', 'changed'], { description: 'What became of the item.' }),
  key: Type.Unknown({ description: 'Its key.' }),
  before: Type.Optional(Type.Unknown({ description: 'The item before; absent for an added one.' })),
  after: Type.Optional(Type.Unknown({ description: 'The item after; absent for a removed one.' })),
})
const people = [
  { name: 'Ada', days: 3 },
  { name: 'Grace', days: 9 },
]

export default agent({
  type: 'exec',
  version: '1.0.0',
  description: 'Filters, reshapes, splits, joins, compares and converts lists, and fills templates.',
  actions: {
    filter: {
      direction: 'source',
      description: 'Keeps the items for which `where` is true.',
      effect: 'read',
      example: { name: 'late.json', items: people, where: 'item.days > inputs.most', inputs: { most: 5 } },
      entry: entryOf(
        { ...list, where: expression('CEL that is true for what stays.'), inputs },
        oneOf('items', 'file'),
      ),
      data: Type.Object(Listed),
      async run({ name, where, inputs: given, ...from }, context) {
        const kept = filtered(recordsOf(from, context), where, given, context)
        return result(name, await writeList(name, kept, context, from))
      },
    },
    pick: {
      direction: 'source',
      description: 'Makes an object with the given fields of each item.',
      effect: 'read',
      example: { name: 'names.json', items: people, fields: { who: 'item.name', isLate: 'item.days > 5' } },
      entry: entryOf(
        {
          ...list,
          fields: Type.Union(
            [
              Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }),
              Type.Record(Type.String(), expression('CEL that gives the value.'), { minProperties: 1 }),
            ],
            {
              'x-expected': 'a list of fields, or a mapping of names to expressions',
              description: 'Which fields: [name, owner.email], or by name the CEL that gives each.',
            },
          ),
          where: Type.Optional(expression('CEL that is true for what stays.')),
          inputs,
        },
        oneOf('items', 'file'),
      ),
      data: Type.Object(Listed),
      async run({ name, fields, where, inputs: given, ...from }, context) {
        const all = recordsOf(from, context)
        const kept = where === undefined ? all : filtered(all, where, given, context)
        return result(name, await writeList(name, picked(kept, fields, given, context), context, from))
      },
    },
    split: {
      direction: 'source',
      description: 'Splits a list into files of at most `count` items, such as part-0001.json.',
      effect: 'read',
      example: { name: 'part.json', file: 'records.csv', count: 100 },
      entry: entryOf(
        {
          ...list,
          count: Type.Integer({ minimum: 1, maximum: 10_000, description: 'How many items a file has at most.' }),
        },
        oneOf('items', 'file'),
      ),
      data: Type.Object({
        files: Type.Array(Part, { description: 'The files, in order.' }),
        total: Type.Integer({ description: 'How many items there are.' }),
      }),
      async run({ name, count, ...from }, context) {
        const parts: Part[] = []
        let total = 0
        for await (const some of grouped(recordsOf(from, context), count)) {
          if (parts.length === MOST_FILES)
            throw refuse(context, `more than ${MOST_FILES} files`, 'give a larger `count`')
          const written = await writeRecords(numbered(name, parts.length + 1), eachOf(some), context, from)
          parts.push({ name: written.name, path: written.path, items: some.length })
          total += some.length
        }
        return { text: `${total} items in ${parts.length} files`, data: { files: parts, total } }
      },
    },
    join: {
      direction: 'source',
      description: 'Makes one list of several, in their order.',
      effect: 'read',
      example: { name: 'all.json', lists: [[1, 2], [3]] },
      entry: entryOf(
        {
          files: Type.Optional(
            Type.Array(filePath('The path of a file.'), { description: 'The files with the lists, in order.' }),
          ),
          lists: Type.Optional(Type.Array(Type.Array(Type.Unknown()), { description: 'The lists as values.' })),
          at,
          delimiter,
          columns,
        },
        oneOf('files', 'lists'),
      ),
      data: Type.Object(Listed),
      async run({ name, files, lists, ...rest }, context) {
        const sources: Given[] = files
          ? files.map(each => ({ ...rest, file: each }))
          : (lists ?? []).map(each => ({ items: each as Json[] }))
        return result(name, await writeList(name, joined(sources, context), context, rest))
      },
    },
    template: {
      direction: 'source',
      description: 'Writes a text, or a template file with {{ }} filled in, once or for each item.',
      effect: 'read',
      example: { name: 'note.txt', text: 'All is well.' },
      entry: entryOf(
        {
          text: Type.Optional(Type.String({ description: 'The text itself.' })),
          template: Type.Optional(filePath('The template file; in {{ }} it has CEL over inputs, item and index.')),
          ...list,
          inputs,
        },
        {
          ...oneOf('text', 'template'),
          not: { required: ['items', 'file'] },
        },
      ),
      data: Type.Object({ bytes: Type.Integer({ description: 'How many bytes the file has.' }) }),
      async run({ name, text: whole, template, inputs: given, ...from }, context) {
        const { bytes } =
          template === undefined
            ? await context.write(name, whole ?? '')
            : await writeTexts(
                name,
                filled(await readText(context, template, TEMPLATE_BYTES), from, given, context),
                context,
              )
        return { text: `${bytes} bytes in ${name}`, data: { bytes } }
      },
    },
    csv_to_json: {
      direction: 'source',
      description: 'Makes objects of the rows of CSV, with the names in its first line; all values are texts.',
      effect: 'read',
      example: { name: 'people.json', file: 'people.csv' },
      entry: entryOf({ file: filePath('The CSV file.'), delimiter }),
      data: Type.Object(Listed),
      async run({ name, ...from }, context) {
        const form = /\.(jsonl|ndjson)$/i.test(name) ? 'lines' : 'json'
        return result(name, await writeList(name, recordsIn(from, context, 'csv'), context, {}, form))
      },
    },
    json_to_csv: {
      direction: 'source',
      description: 'Makes CSV of a list of objects.',
      effect: 'read',
      example: { name: 'people.csv', items: people },
      entry: entryOf({ ...list, columns }, oneOf('items', 'file')),
      data: Type.Object(Listed),
      async run({ name, columns: named, delimiter: mark, ...from }, context) {
        const written = { columns: named, delimiter: mark }
        return result(name, await writeList(name, recordsOf(from, context), context, written, 'csv'))
      },
    },
    diff: {
      direction: 'source',
      description: 'Compares two lists by the key of their items: what was added, removed and changed.',
      effect: 'read',
      example: { name: 'changes.json', key: 'item.id', before: [{ id: 1, n: 1 }], after: [{ id: 1, n: 2 }, { id: 2 }] },
      entry: entryOf(
        {
          key: expression('CEL that gives the key of an item, such as item.id.'),
          before: Type.Optional(Type.Array(Type.Unknown(), { description: 'The older list as a value.' })),
          before_file: Type.Optional(filePath('The file with the older list.')),
          after: Type.Optional(Type.Array(Type.Unknown(), { description: 'The newer list as a value.' })),
          after_file: Type.Optional(filePath('The file with the newer list.')),
          at,
          delimiter,
          inputs,
        },
        { oneOf: ['before', 'before_file'].flatMap(a => ['after', 'after_file'].map(b => ({ required: [a, b] }))) },
      ),
      data: Type.Object({
        items: Type.Array(Change, { description: 'The changes, as many as fit; the file has all of them.' }),
        total: Listed.total,
        truncated: Listed.truncated,
        added: Type.Integer({ description: 'How many items were added.' }),
        removed: Type.Integer({ description: 'How many were removed.' }),
        changed: Type.Integer({ description: 'How many were changed.' }),
      }),
      async run({ name, key, before, before_file, after, after_file, inputs: given, ...rest }, context) {
        const counts = { added: 0, removed: 0, changed: 0 }
        const keyOf = context.expression(key, given as JsonObject)
        const older = recordsOf({ ...rest, items: before, file: before_file }, context)
        const newer = recordsOf({ ...rest, items: after, file: after_file }, context)
        const changes = changesBetween(older, newer, keyOf, context, counts)
        const written = await writeList(name, changes, context, rest)
        const { added, removed, changed } = counts
        return { text: `${added} added, ${removed} removed, ${changed} changed`, data: { ...written, ...counts } }
      },
    },
  },
})
type Part = Type.Static<typeof Part>

const result = (name: string, data: { items: Json[]; total: number; truncated: boolean }) => ({
  text: `${data.total} items in ${name}`,
  data,
})

const refuse = ({ callName }: Context, why: string, hint?: string) =>
  new AgentError(`[${callName}] ${why}`, { code: 'invalid_request', ...(hint && { hint }) })

interface Source extends Omit<Given, 'items'> {
  items?: unknown[] | undefined
}

const recordsOf = (from: Source, context: Context) => recordsIn(from as Given, context)

async function* eachOf(values: readonly Json[]): AsyncGenerator<Json, void> {
  yield* values
}

/** `part-0001.json` of `part.json`. */
function numbered(name: string, number: number): string {
  const [, stem = name, extension = ''] = /^(.*?)(\.[^./]+)?$/.exec(name) ?? []
  return `${stem}-${String(number).padStart(4, '0')}${extension}`
}

async function* joined(sources: readonly Given[], context: Context): AsyncGenerator<Json, void> {
  for (const source of sources) yield* recordsIn(source, context)
}

/** The pieces of a template with the values of its expressions, once, or for each item of a list. */
async function* filled(
  template: string,
  from: Source,
  given: Record<string, unknown> | undefined,
  context: Context,
): AsyncGenerator<string, void> {
  const pieces = template.split(/\{\{([\s\S]*?)\}\}/).map((piece, at): Evaluate => {
    return at % 2 === 0 ? () => piece : context.expression(piece.trim(), given as JsonObject)
  })
  const textOf = (value: Json) => (value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value))
  const items = from.items || from.file ? recordsOf(from, context) : eachOf([null])
  let index = 0
  for await (const item of items) {
    yield pieces.map(piece => textOf(piece(item, index))).join('')
    index++
  }
}
