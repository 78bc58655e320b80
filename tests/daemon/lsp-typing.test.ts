// The language server while somebody types: what it completes, explains and leads to, in texts that are not whole. `|` marks
// the cursor.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { files } from '../support/daemon.ts'
import { Editor } from '../support/editor.ts'

const SUB = `name: "@local/sub"
version: 2.0.0
description: Counts words [at](command:all) length
inputs:
  - { name: word, type: string, required: true, description: Which word }
outputs: [{ name: total, type: number, value: "{{ 1 }}" }]
phases: [{ name: a, agent: exec, commands: [{ name: c, run: ls }] }]
`
const HEAD = `name: "@local/a"
version: 1.0.0
inputs:
  - { name: days, type: number, description: How many days }
  - { name: my-env, type: string }
phases:
  - name: find
    agent: issues
    action: search
    sources: [{ name: found.json, ref: project = A }]
  - { name: call, type: team, team: ./sub, inputs: { word: x } }
  - { name: each, type: map, team: ./sub, items: [1], inputs: { word: "{{ item }}" } }
  - { name: ask-them, type: gate, review: { prompt: x, inputs: [{ name: answer, type: string }] } }
  - { name: tell, agent: chat, notify: [on_fail] }
`
const TAIL = `  - name: last
    agent: exec
    commands: [{ name: c, run: ls }]
`
/** A phase that is being typed between whole ones. */
const inPhase = (...lines: string[]) => `${HEAD}  - ${lines.join('\n    ')}\n${TAIL}`

const workspace = files({
  'team.yml': HEAD + TAIL,
  'sub/team.yml': SUB,
  'data/tickets.csv': '',
  'data/below/x.csv': '',
  'notes.md': '',
})
const path = join(workspace, 'team.yml')
let editor: Editor
beforeAll(async () => {
  editor = await Editor.open({ workspace })
})
afterAll(async () => {
  expect(await editor.end()).toBe(0)
  expect(await editor.process.stderr.text()).toBe('')
})

describe('completion', () => {
  test.each<[string, string, string[], string[]]>([
    [
      'a phase in an empty line',
      inPhase('name: x', '|'),
      ['agent', 'depends_on', 'type', 'when'],
      ['name', 'items', 'team'],
    ],
    ['a phase by their first letters', inPhase('name: x', 'ag|'), ['agent', 'when'], ['name', 'review']],
    [
      'a gate',
      inPhase('name: x', 'type: gate', 're|'),
      ['commands', 'review', 'env'],
      ['type', 'agent', 'action', 'retry'],
    ],
    ['a map', inPhase('name: x', 'type: map', 'it|'), ['items', 'key', 'team', 'phases'], ['review', 'commands']],
    [
      'an agent without actions',
      inPhase('name: x', 'agent: exec', '|'),
      ['commands', 'env', 'retry'],
      ['action', 'sources'],
    ],
    [
      'a listener',
      inPhase('name: x', 'agent: chat', 'notify: [on_fail]', '|'),
      ['channels', 'message'],
      ['depends_on', 'retry'],
    ],
  ])('fields of %s', async (_, text, there, absent) => {
    const found = await editor.completions(path, text)
    expect(found).toEqual(expect.arrayContaining(there))
    expect(found.filter(each => absent.includes(each))).toEqual([])
  })

  test.each<[string, string, string[]]>([
    [
      'fields of an action',
      inPhase('name: x', 'agent: issues', 'action: search', 'sources: [{ |'),
      ['name', 'ref', 'limit'],
    ],
    [
      'fields of an action in a list',
      inPhase('name: x', 'agent: issues', 'action: search', 'sources:', '  - |'),
      ['name', 'ref', 'limit'],
    ],
    ['fields of a mapping that does not end', inPhase('name: x', 'retry: { att|'), ['attempts', 'backoff']],
    ['inputs of a sub-team', inPhase('name: x', 'type: team', 'team: ./sub', 'inputs: { |'), ['word']],
    ['types', inPhase('name: x', 'type: |'), ['gate', 'map', 'standard', 'team']],
    ['true and false', inPhase('name: x', 'always: |'), ['false', 'true']],
    ['actions', inPhase('name: x', 'agent: git', 'action: |'), ['create_pr']],
    ['phases in a list', inPhase('name: x', 'depends_on: [find, |]'), ['ask-them', 'call', 'each', 'last']],
    [
      'phases in a list that does not end',
      inPhase('name: x', 'depends_on: [|'),
      ['ask-them', 'call', 'each', 'find', 'last'],
    ],
    ['phases in lines', inPhase('name: x', 'depends_on:', '  - |'), ['ask-them', 'call', 'each', 'find', 'last']],
    ['sub-teams', inPhase('name: x', 'type: team', 'team: |'), ['./sub']],
    [
      'files',
      inPhase('name: x', 'agent: issues', 'action: add_attachment', 'target_entries: [{ name: y, ref: A-1, file: |'),
      ['data/', 'files/find/found.json', 'notes.md', 'sub/', 'team.yml'],
    ],
    [
      'files of a folder',
      inPhase(
        'name: x',
        'agent: issues',
        'action: add_attachment',
        'target_entries: [{ name: y, ref: A-1, file: data/|',
      ),
      ['data/below/', 'data/tickets.csv'],
    ],
    ['names of a condition', inPhase('name: x', 'when: |'), ['inputs', 'phases', 'run']],
    ['phases of a condition', inPhase('name: x', 'when: phases.|'), ['ask-them', 'call', 'each', 'find', 'last']],
    [
      'what a phase has',
      inPhase('name: x', "when: phases.find.st| == 'failed'"),
      ['data', 'error', 'files', 'reason', 'state', 'text'],
    ],
    [
      'the data of an action',
      inPhase('name: x', 'agent: exec', 'env: { A: "{{ phases.find.data.|'),
      ['entries', 'items', 'total', 'truncated'],
    ],
    ['the data of a sub-team', inPhase('name: x', 'agent: exec', 'env: { A: "{{ phases.call.data.| }}" }'), ['total']],
    [
      'the data of a map',
      inPhase('name: x', 'when: phases.each.data.?|'),
      ['cancelled', 'completed', 'failed', 'items', 'total'],
    ],
    ['the data of a review', inPhase('name: x', "when: phases['ask-them'].data.|"), ['answer']],
    ['inputs', inPhase('name: x', 'agent: exec', 'env:', '  A: "{{ string(inputs.|'), ['days', 'my-env']],
    [
      'an item of a map',
      inPhase('name: x', 'type: map', 'team: ./sub', 'inputs: { word: "{{ | }}" }'),
      ['index', 'inputs', 'item', 'phases', 'run'],
    ],
    [
      'secrets where they may stand',
      inPhase('name: x', 'agent: exec', 'env: { A: "{{ sec|'),
      ['inputs', 'phases', 'run', 'secrets'],
    ],
    ['nothing in a comment', inPhase('name: x', '# ag|'), []],
    ['nothing in a command', inPhase('name: x', 'agent: exec', 'commands: [{ name: c, run: "ls |" }]'), []],
    ['nothing in a text of CEL', inPhase('name: x', "when: phases.find.text == 'in|'"), []],
    [
      'phases of outputs',
      `${HEAD}${TAIL}outputs: [{ name: a, value: "{{ phases.|`,
      ['ask-them', 'call', 'each', 'find', 'last'],
    ],
    [
      'fields of a team',
      `${HEAD}${TAIL}|\n`,
      ['concurrency', 'description', 'environments', 'outputs', 'requires', 'timeout', 'triggers'],
    ],
    ['fields of an input', HEAD.replace('type: number', '|'), ['choices', 'default', 'required', 'secret', 'type']],
    [
      'kinds of triggers',
      `${HEAD}${TAIL}triggers: [{ name: x, |`,
      [
        'at_most',
        'chain',
        'environment',
        'hook',
        'inputs',
        'overlap',
        'queue_max',
        'run_name',
        'schedule',
        'watch',
        'when',
        'workspace',
      ],
    ],
    [
      'the beginning',
      '|',
      [
        'name',
        'phases',
        'version',
        'concurrency',
        'description',
        'environments',
        'inputs',
        'outputs',
        'requires',
        'timeout',
        'triggers',
      ],
    ],
  ])('%s', async (_, text, labels) => {
    const found = await editor.completions(path, text)
    expect(found).toEqual(labels)
  })

  test.each([
    ['a field', inPhase('name: x', 'ag|'), 'agent', inPhase('name: x', 'agent: ')],
    ['a field that has its colon', inPhase('name: x', 'ag|: exec'), 'agent', inPhase('name: x', 'agent: exec')],
    ['a list where none begins', inPhase('name: x', 'depends_on: |'), 'find', inPhase('name: x', 'depends_on: [find]')],
    [
      'the first phase',
      `${HEAD.split('  - name: find')[0]}  |`,
      'name',
      `${HEAD.split('  - name: find')[0]}  - name: `,
    ],
    [
      'a name with a dash',
      inPhase('name: x', 'when: phases.as|.data'),
      'ask-them',
      inPhase('name: x', "when: phases['ask-them'].data"),
    ],
    [
      'a path',
      inPhase('name: x', 'type: team', 'team: ./s|'),
      './sub',
      inPhase('name: x', 'type: team', 'team: ./sub'),
    ],
  ])('%s is written so that it fits', async (_, before, label, after) => {
    expect(await editor.completed(path, before, label)).toBe(after)
  })

  test('every agent, with what it is', async () => {
    const found = await editor.completions(path, inPhase('name: x', 'agent: |'))
    expect(found).toEqual(expect.arrayContaining(['exec', 'http', 'issues', 'llm']))
  })
})

describe('hover', () => {
  const text = HEAD + TAIL
  test.each<[string, string, string[]]>([
    [
      'a field, as `explain` has it',
      inPhase('name: x', 'retr|y: {}'),
      ['`retry`: a mapping', 'Repeats the phase after a failure', 'attempts: 3'],
    ],
    [
      'a value, as its field',
      inPhase('name: x', 'on_failure: contin|ue'),
      ['one of fail, continue, escalate', 'default "fail"'],
    ],
    ['a field of an action', text.replace('ref: project', 're|f: project'), ['A query in JQL']],
    [
      'an agent',
      text.replace('issues', 'iss|ues'),
      ['agent `issues`', 'Reads and writes issues of Jira.', '- `search`: Finds issues'],
    ],
    [
      'an action',
      text.replace('search', 'sea|rch'),
      ['`search` (read)', 'Finds issues by a query', '- `ref` (required)'],
    ],
    [
      'a sub-team, in which nothing is a link',
      text.replace('./sub', './s|ub'),
      ['`@local/sub@2.0.0`', 'Counts words \\[at\\](command:all)', '- `word`: string, required: Which word'],
    ],
    ['an input of a sub-team', text.replace('{ word: x', '{ wo|rd: x'), ['input `word`', 'of `@local/sub@2.0.0`']],
    ['a phase', inPhase('name: x', 'depends_on: [fi|nd]'), ['phase `find`', 'agent: issues, action: search']],
    [
      'an input in an expression',
      inPhase('name: x', 'when: inputs.da|ys > 1'),
      ['input `days`', 'number: How many days'],
    ],
    [
      'a field of a phase',
      inPhase('name: x', "when: phases.find.sta|te == 'failed'"),
      ['\\`completed\\`, \\`failed\\`'],
    ],
  ])('%s', async (_, marked, parts) => {
    const found = await editor.hover(path, marked)
    for (const part of parts) expect(found).toContain(part)
  })

  test.each([
    ['a comment', `${text}# pha|ses`],
    ['a text of an expression', inPhase('name: x', 'agent: exec', `env: { A: "{{ 'phases.fi|nd' }}" }`)],
    ['an unknown agent', inPhase('name: x', 'agent: ex|ce')],
  ])('nothing of %s', async (_, marked) => expect(await editor.hover(path, marked)).toBe(''))
})

describe('definition', () => {
  const text = HEAD + TAIL
  const lineOf = (part: string, of = text) => of.slice(0, of.indexOf(part)).split('\n').length - 1
  test.each<[string, string, string, number]>([
    ['a sub-team', text.replace('./sub', './s|ub'), 'sub/team.yml', 0],
    ['an input of a sub-team', text.replace('{ word: x', '{ wo|rd: x'), 'sub/team.yml', 4],
    ['a phase in depends_on', inPhase('name: x', 'depends_on: [find, ea|ch]'), 'team.yml', lineOf('name: each')],
    [
      'a phase in an expression',
      inPhase('name: x', 'agent: exec', 'env: { A: "{{ phases.fi|nd.text }}" }'),
      'team.yml',
      lineOf('name: find'),
    ],
    [
      'a phase in brackets',
      inPhase('name: x', "when: phases['ask-|them'].data.x"),
      'team.yml',
      lineOf('name: ask-them'),
    ],
    [
      'a phase in the path of a file',
      inPhase('name: x', 'agent: llm', 'sources: [{ name: a, file: files/fi|nd/found.json }]'),
      'team.yml',
      lineOf('name: find'),
    ],
    ['an input', inPhase('name: x', 'when: inputs.da|ys > 1'), 'team.yml', lineOf('name: days')],
    [
      'a phase in a text that is broken below',
      `${inPhase('name: x', 'depends_on: [fi|nd]')}  - ]\n`,
      'team.yml',
      lineOf('name: find'),
    ],
  ])('%s', async (_, marked, file, line) => {
    const found = await editor.definition(path, marked)
    expect([found?.uri, found?.range.start.line]).toEqual([`file://${join(workspace, file)}`, line])
  })

  test('nothing of what is declared nowhere', async () => {
    expect(await editor.definition(path, inPhase('name: x', 'depends_on: [no|ne]'))).toBeNull()
    expect(await editor.definition(path, inPhase('name: x', 'when: pha|ses.find.text'))).toBeNull()
  })
})

test('each beginning of a team is answered at each place', async () => {
  const text = (HEAD + TAIL).replaceAll('\n', '\r\n')
  for (let at = 0; at <= text.length; at += 7) {
    const marked = `${text.slice(0, at)}|`
    expect(await editor.completions(path, marked)).toBeArray()
    expect(await editor.hover(path, marked)).toBeString()
    await editor.definition(path, marked)
  }
}, 60_000)
