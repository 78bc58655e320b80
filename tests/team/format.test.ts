import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Glob } from 'bun'
import { parseDocument } from 'yaml'
import { discover } from '../../lib/agent/catalogue.ts'
import { loadBundle } from '../../lib/team/compile/bundle.ts'
import { formatTeam } from '../../lib/team/compile/format-team.ts'
import { files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const ROOT = join(import.meta.dir, '../..')
const EXAMPLES = [...new Glob('examples/**/team.yml').scanSync(ROOT)].sort()

const format = (text: string) => formatTeam('team.yml', new TextEncoder().encode(text)).after

const WRITTEN = `# yaml-language-server: $schema=x

# About the team.


version:   1.0.0
name: '@local/odd'   # the name
inputs:
- {type: string,  name: a}
- name: b
  default:   "x: y"

  # the values
  choices: [ "x: y",
    'z' ]
- type: number
  # about the name
  name: c
concurrency: { key: 'k-{{ inputs.a }}',
   limit: 1 }
phases:
    - agent: exec
      name: one # first
      commands:
          - name: c
            run: |
                set -e
                  echo "a # b"

                echo b
          # the second
          - name: d
            run: >-
                echo
                one two


                three
                  four
          - run: plain text
                over lines
            name: e
# end
`

const FORMATTED = `# yaml-language-server: $schema=x

# About the team.

version: 1.0.0
name: '@local/odd' # the name
inputs:
  - { name: a, type: string }
  - name: b
    default: "x: y"

    # the values
    choices: ["x: y", 'z']
  - type: number
    # about the name
    name: c
concurrency: { key: 'k-{{ inputs.a }}', limit: 1 }
phases:
  - agent: exec
    name: one # first
    commands:
      - name: c
        run: |
          set -e
            echo "a # b"

          echo b
      # the second
      - name: d
        run: >-
          echo
          one two


          three
            four
      - name: e
        run: plain text
          over lines
# end
`

describe('the one layout', () => {
  test('keeps comments, quotes, braces and how texts are broken', () => expect(format(WRITTEN)).toBe(FORMATTED))
  test('formatting again changes nothing', () => expect(format(FORMATTED)).toBe(FORMATTED))

  test('a name stands first where no comment belongs to another place', () => {
    expect(format('version: 1.0.0\nname: "@a/b"\nphases: [{ agent: exec, name: x }]\n')).toBe(
      'name: "@a/b"\nversion: 1.0.0\nphases: [{ name: x, agent: exec }]\n',
    )
    const aliased = 'version: &v 1.0.0\nname: *v\n'
    expect(format(aliased)).toBe(aliased)
  })

  test('a long line in braces is broken, and a long text is not', () => {
    const long = 'word '.repeat(30).trim()
    expect(format(`inputs:\n- { name: x, description: ${long} }\n`)).toBe(
      `inputs:\n  - {\n      name: x,\n      description: ${long}\n    }\n`,
    )
    expect(format(`description: ${long} ${long}\n`)).toBe(`description: ${long} ${long}\n`)
  })

  test('line ends of Windows stay', () => expect(format('a:   1\r\nb: 2\r\n')).toBe('a: 1\r\nb: 2\r\n'))

  test.each([
    ['a: [1\nb: 2\n', 'team.yml:2:1: '],
    ['', 'the file is empty'],
    ['a: 1\n---\nb: 2\n', 'a second document begins here'],
  ])('%j cannot be read', (text, message) => {
    expect(() => format(text)).toThrow(
      expect.objectContaining({
        code: 'invalid_request',
        details: [expect.objectContaining({ message: expect.stringContaining(message) })],
      }),
    )
  })
})

test('the examples are in this layout', () => {
  expect(EXAMPLES.length).toBeGreaterThan(15)
  expect(
    EXAMPLES.filter(file => format(readFileSync(join(ROOT, file), 'utf8')) !== readFileSync(join(ROOT, file), 'utf8')),
  ).toEqual([])
})

/** The places of phases and expressions are those of the text. */
const withoutPlaces = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, each) => (key === 'place' ? undefined : each instanceof Set ? [...each] : each)),
  )

test.each(EXAMPLES)('%s compiles to the same when it was written carelessly', async file => {
  const agents = await discover({ home: folder() })
  const text = readFileSync(join(ROOT, file), 'utf8')
  const careless = parseDocument(text).toString({ indent: 4, indentSeq: false, lineWidth: 60 })
  const others = Object.fromEntries(
    [...new Glob('**/team.yml').scanSync(join(ROOT, dirname(file)))].map(name => [
      name,
      readFileSync(join(ROOT, dirname(file), name), 'utf8'),
    ]),
  )
  const compiled = async (root: string) => {
    const bundle = await loadBundle(files({ ...others, 'team.yml': root }), { agents })
    return Object.keys(bundle.json().teams).map(key => withoutPlaces(bundle.team(key)))
  }
  const formatted = format(careless)
  expect(format(formatted)).toBe(formatted)
  expect(await compiled(formatted)).toEqual(await compiled(careless))
})
