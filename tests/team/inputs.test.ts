import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Json, JsonObject } from '../../lib/json.ts'
import type { Field, FieldType } from '../../lib/team/model/compiled-team.ts'
import { inputsFor, inputsFromArguments } from '../../lib/team/model/inputs.ts'
import { folder } from '../support/folder.ts'

const field = (name: string, type: FieldType, more: Partial<Field> = {}): Field => ({
  name,
  type,
  required: false,
  secret: false,
  ...more,
})

const FIELDS = [
  field('s', 'string', { required: true }),
  field('n', 'number', { default: 5 }),
  field('b', 'boolean'),
  field('l', 'list'),
  field('o', 'object'),
  field('f', 'file'),
  field('c', 'string', { choices: ['x', 'y'] }),
]

const given: [given: JsonObject, values: JsonObject, problems: string[]][] = [
  [{ s: 'a' }, { s: 'a', n: 5 }, []],
  [
    { s: 'a', n: 0, b: false, l: [], o: {}, f: 'x', c: 'y' },
    { s: 'a', n: 0, b: false, l: [], o: {}, f: 'x', c: 'y' },
    [],
  ],
  [{ s: 'a', b: null }, { s: 'a', n: 5 }, []],
  [{}, { n: 5 }, ['/inputs/s input s is required: text']],
  [{ s: null }, { n: 5 }, ['/inputs/s input s is required: text']],
  [{ s: 1 }, { n: 5 }, ['/inputs/s input s: expected text, not a number']],
  [{ s: 'a', n: '3' }, { s: 'a' }, ['/inputs/n input n: expected a number, not text']],
  [
    { s: 'a', b: 'true', l: {}, o: [], c: 'z' },
    { s: 'a', n: 5 },
    [
      '/inputs/b input b: expected true or false, not text',
      '/inputs/l input l: expected a list, not an object',
      '/inputs/o input o: expected an object, not a list',
      '/inputs/c input c: expected one of "x", "y"',
    ],
  ],
  [{ s: 'a', sum: 1 }, { s: 'a', n: 5 }, ['/inputs/sum no input sum is declared']],
  [{ s: 'a', toString: 'x' }, { s: 'a', n: 5 }, ['/inputs/toString no input toString is declared']],
]

test.each(given)('%j', (values, expected, problems) => {
  const result = inputsFor(FIELDS, values)
  expect(result.values).toEqual(expected)
  expect(result.problems.map(({ path, message }) => `${path} ${message}`)).toEqual(problems)
})

const typed: [argument: string, value: Json][] = [
  ['s=', ''],
  ['s=12', '12'],
  ['s=a=b', 'a=b'],
  ['n=12', 12],
  ['n=-1.5e3', -1500],
  ['b=true', true],
  ['l=[1,"a"]', [1, 'a']],
  ['o={"a":{}}', { a: {} }],
  ['f=x/y.txt', 'x/y.txt'],
  ['f=@x/y.txt', 'x/y.txt'],
  ['f=@@x', '@x'],
  ['s=@@x', '@x'],
  ['s=@@-', '@-'],
]

test.each(typed)('-i %s', async (argument, value) => {
  expect(await inputsFromArguments(FIELDS, [argument])).toEqual({ [argument[0]!]: value })
})

const refused: [argument: string, message: string][] = [
  ['n=x', '-i n: expected a number'],
  ['n="1"', '-i n: expected a number'],
  ['b=yes', '-i b: expected true or false'],
  ['l=a,b', '-i l: expected a list as JSON, such as ["a","b"]'],
  ['q=1', '-i q: the team has no input of this name'],
  ['noequals', '-i noequals: expected name=value or name=@file'],
  ['s=@/nowhere/at/all', '-i s: there is no file /nowhere/at/all'],
]

test.each(refused)('-i %s is refused', async (argument, message) => {
  await expect(inputsFromArguments(FIELDS, [argument])).rejects.toThrow(message)
})

test('-i name=@file reads by the declared type', async () => {
  const home = folder()
  await Bun.write(join(home, 'list.json'), '["a", 1]\n')
  await Bun.write(join(home, 'text'), 'two\nlines')
  expect(await inputsFromArguments(FIELDS, [`l=@${home}/list.json`, `s=@${home}/text`])).toEqual({
    l: ['a', 1],
    s: 'two\nlines',
  })
})
