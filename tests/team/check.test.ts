import { describe, expect, test } from 'bun:test'
import { Type } from '../../lib/agent/cadre.ts'
import { agent } from '../../lib/agent/define.ts'
import { loadBundle } from '../../lib/team/compile/bundle.ts'
import { problemsOf } from '../../lib/team/model/problem.ts'
import { HEAD, load, problems, team } from './load.ts'

const EXEC = "agent: exec, commands: [{ name: c, run: 'true' }]"

test('five mistakes in one file, each at its place', async () => {
  const text = `name: "@local/digest"
version: 1.0.0
descripton: Digest of open tickets
phases:
  - name: fetch
    agent: isues
    action: search
    sources: [{ name: open.json, ref: x }]
    timeout: 90
  - name: report
    agent: exec
    depends_on: [fetch, fetsh]
    when: phases.fetch.data.total == "3" && phases.fetch.stat
    commands:
      - { name: join, run: 'echo hi' }
`
  expect(await problems(text)).toEqual([
    '3:1 unknown field `descripton` (did you mean `description`?)',
    '6:12 unknown agent `isues` (did you mean `issues`?): there are issues, http, store, wiki, git, chat and exec',
    '9:14 expected a duration such as 90s, 5m or 2h, not the number 90: a bare number has no unit',
    '12:25 there is no phase `fetsh` (did you mean `fetch`?)',
    '13:58 a phase has no `stat` (did you mean `state`?): it has state, reason, text, data, files, error',
  ])
})

/** A phase in flow style; a mark before its first field stands before the phase. */
const phaseLine = (line: string) => (line.startsWith('»') ? `  - »{ ${line.slice(1)} }\n` : `  - { ${line} }\n`)

test('an unknown agent, action or type hides no other mistake', async () => {
  const text = `name: "@local/digest"
version: 1.0.0
inputs:
  - { name: count, type: integer, default: 3 }
  - { name: odd, type: colour, default: 3 }
phases:
  - name: build
    agent: exce
    commands: [{ name: c, run: x, tiemout: 3s }]
  - name: search
    agent: issues
    action: serch
    sources: [{ name: e, ref: x, limt: 1 }]
  - name: each
    type: mapp
    items: "{{ inputs.lst }}"
    concurency: 2
  - name: ask
    type: approval
    review: { promt: Go? }
  - name: far
    type: parallel
    when: phases.each.stat
    depends_on: [each]
  - name: tell
    agent: chta
    notify: { on_fail: { mesage: x } }
`
  expect(await problems(text)).toEqual([
    '4:26 expected one of string, number, boolean, list, object, file, not the text "integer" (did you mean `number`?)',
    '5:24 expected one of string, number, boolean, list, object, file, not the text "colour"',
    '8:12 unknown agent `exce` (did you mean `exec`?): there are issues, http, store, wiki, git, chat and exec',
    '9:35 unknown field `tiemout`: there are name, run, env and effect',
    '12:13 agent `issues` has no action `serch` (did you mean `search`?): one of search, add_comment',
    '13:34 unknown field `limt` (did you mean `limit`?)',
    '14:5 `phases` is missing: what is done with each item (or `team`, a folder or a package that does it)',
    '15:11 expected one of standard, gate, team, map, not the text "mapp" (did you mean `map`?)',
    '16:23 no input `lst` is declared',
    '17:5 unknown field `concurency` (did you mean `concurrency`?)',
    '19:11 expected one of standard, gate, team, map, not the text "approval"',
    '20:13 `prompt` is missing',
    '20:15 unknown field `promt` (did you mean `prompt`?)',
    '22:11 expected one of standard, gate, team, map, not the text "parallel"',
    '23:23 a phase has no `stat` (did you mean `state`?): it has state, reason, text, data, files, error',
    '26:12 unknown agent `chta` (did you mean `chat`?): there are issues, http, store, wiki, git, chat and exec',
    '27:26 unknown field `mesage` (did you mean `message`?)',
  ])
})

/** Phases, one a line, from line 4 on. */
const phasesOf = (...lines: string[]) => `${HEAD}phases:\n${lines.map(phaseLine).join('')}`

/** Takes the mark out that stands before the mistake. */
function unmark(marked: string): { text: string; place: string } {
  const before = marked.slice(0, marked.indexOf('»')).split('\n')
  return { text: marked.replace('»', ''), place: `${before.length}:${before.at(-1)!.length + 1}` }
}

const IN_DEFAULT =
  'templates are not read in `default`: write the value itself; or leave `default` out, and write what there is without a value where it is used: `{{ x == null ? … : x }}`'
const IN_CHOICES = 'templates are not read in `choices`: write each choice itself, or leave `choices` out'

describe('one mistake, marked by »', () => {
  const cases: [lines: string[], problem: string][] = [
    [[`name: a, ${EXEC}`, `name: »a, ${EXEC}`], 'another phase is named `a`'],
    [
      [`name: »Big, ${EXEC}`],
      'expected a name of small letters, digits, - and _ that begins with a letter, not the text "Big"',
    ],
    [[`name: a, depends_on: [»a], ${EXEC}`], '`a` cannot depend on itself'],
    [[`name: a, depends_on: »b, ${EXEC}`, `name: b, ${EXEC}`], 'expected a list of phase names, not the text "b"'],
    [
      [
        `name: a, ${EXEC}`,
        `name: b, depends_on: »[d], ${EXEC}`,
        `name: c, depends_on: [b], ${EXEC}`,
        `name: d, depends_on: [c, a], ${EXEC}`,
      ],
      'phases depend on each other in a circle: b → d → c → b',
    ],
    [[`name: a, ${EXEC}`, `name: b, depends_on: [a, »a], ${EXEC}`], '`a` is listed twice'],
    [
      [`name: a, ${EXEC}`, `name: b, when: phases.»a.state == 'x', ${EXEC}`],
      '`a` may not have run before `b`: add it to `depends_on`',
    ],
    [[`name: a, when: phases.»a.state == 'x', ${EXEC}`], '`a` cannot use its own result'],
    [[`»${EXEC}`], '`name` is missing'],
    [
      [`name: a, on_failure: »escalte, ${EXEC}`],
      'expected one of fail, continue, escalate, not the text "escalte" (did you mean `escalate`?)',
    ],
    [
      [`name: a, type: »gat, ${EXEC}`],
      'expected one of standard, gate, team, map, not the text "gat" (did you mean `gate`?)',
    ],
    [[`name: a, retry: »3, ${EXEC}`], 'expected a mapping, not the number 3'],
    [[`name: a, retry: { attempts: »0 }, ${EXEC}`], 'expected a whole number from 1 to 100, not the number 0'],
    [[`name: a, timeout: »5x, ${EXEC}`], 'expected a duration such as 90s, 5m or 2h, not the text "5x"'],
    [[`name: a, always: »yes, ${EXEC}`], 'expected true or false, not the text "yes"'],
    [[`name: a, »dependson: [], ${EXEC}`], 'unknown field `dependson` (did you mean `depends_on`?)'],
    [[`name: a, »needs: [], ${EXEC}`], 'unknown field `needs` (did you mean `depends_on`?)'],
    [
      ['name: a, agent: exec, commands: [{ name: c, »script: x, run: x }]'],
      'unknown field `script` (did you mean `run`?)',
    ],
    [['name: a, agent: exec, commands: [{ name: c, run: x }], »if: x'], 'unknown field `if` (did you mean `when`?)'],
    [[`name: a, timeout: »'{{ inputs.t }}', ${EXEC}`], 'templates are not read here'],
    [[`name: a, when: '»1 + 1', ${EXEC}`], '`when` must give a bool, but this gives int'],
    [[`name: a, when: '{{ »1 }}', ${EXEC}`], '`when` must give a bool, but this gives int'],
    [
      [`name: my-a, ${EXEC}`, `name: b, depends_on: [my-a], when: »phases.my-a.state == 'x', ${EXEC}`],
      "a name with a hyphen is written phases['my-a']",
    ],
    [[`name: a, when: »item == 1, ${EXEC}`], '`item` exists only in the `key`, `inputs` and `phases` of a map'],
    [
      ["name: a, agent: exec, env: { A: '{{ 1 + »}}' }, commands: [{ name: c, run: x }]"],
      'the expression ends too early',
    ],
    [
      ["name: a, agent: exec, env: { A: 'b »{{ 1' }, commands: [{ name: c, run: x }]"],
      '`{{` is not closed by `}}` (a literal `{{` is written `{{{{`)',
    ],
    [
      ["name: a, agent: exec, env: { A: '»{{ 1 } }}' }, commands: [{ name: c, run: x }]"],
      '`{{` is not closed by `}}` (a literal `{{` is written `{{{{`)',
    ],
    [
      [`name: a, agent: exec, env: { A: '»{{ "a }}' }, commands: [{ name: c, run: x }]`],
      '`{{` is not closed by `}}` (a literal `{{` is written `{{{{`)',
    ],
    [
      [`name: a, when: 'run.id.contains(»secrets)', ${EXEC}`],
      'secrets can be used only in `env` and in the entry fields of agents, so that none gets into a record',
    ],
    [
      [`name: a, agent: exec, env: { A: »'${'{{ 1 }}'.repeat(401)}' }, commands: [{ name: c, run: x }]`],
      'a text may contain at most 200 templates',
    ],
    [
      ["name: a, agent: exec, commands: [{ name: c, run: 'echo »{{ inputs.x }}' }]"],
      'templates are not read in `run`: put the value in `env` and use "$NAME" here',
    ],
    [
      ["name: a, type: gate, commands: [{ name: c, run: 'echo »{{ run.id }}' }]"],
      'templates are not read in `run`: put the value in `env` and use "$NAME" here',
    ],
    [[`name: a, when: "»run.id = 'x'", ${EXEC}`.replace('»run.id =', 'run.id »=')], 'a comparison is written `==`'],
    [[`name: a, when: 'run.name »=== null', ${EXEC}`], '`===` and `!==` are written `==` and `!=`'],
    [[`name: a, when: 'true »and false', ${EXEC}`], '`and` is written `&&`'],
    [[`name: a, when: 'true »OR false', ${EXEC}`], '`or` is written `||`'],
    [[`name: a, when: »not false, ${EXEC}`], "`not x` is written `!x`, in quotes: '!x'"],
    [
      [`name: a, when: '»steps.x.ok', ${EXEC}`],
      `unknown name \`steps\` (did you mean \`phases\`?): there are inputs, phases, run`,
    ],
    [
      [`name: a, when: »sise('x') == 1, ${EXEC}`],
      'there is no function `sise` (did you mean `size`?): docs/write-a-team.md lists all functions',
    ],
    [
      ["name: a, agent: exec, env: { A: »'${{ run.id }}' }, commands: [{ name: c, run: x }]".replace("»'$", "'»$")],
      "`${{ }}` is not read: write `{{ }}` (a dollar sign before a value is written `{{ '$' }}`)",
    ],
    [
      ['name: a, type: team, team: »"@x/y@>=1.2 <2"'],
      'a version range must be one word: write @x/y@^1.2 (from 1.2 on, below 2) or @x/y@1.x',
    ],
    [
      ['name: a, type: team, team: ./c, »retry: { attempts: 2 }'],
      'a sub-team cannot be retried as a whole: put `retry` on the phases of the sub-team',
    ],
    [
      ['name: a, type: map, items: [], team: ./c, »retry: { attempts: 2 }'],
      'a sub-team cannot be retried as a whole: put `retry` on the phases of the sub-team',
    ],
    [
      ['name: a, type: gate, commands: [{ name: c, run: x }], »retry: { attempts: 2 }'],
      'a gate cannot be retried: put its commands into an `exec` phase with `retry` before it',
    ],
    [
      [`name: a, repeat: { until: 'true', every: 1m }, ${EXEC}`.replace('repeat: {', 'repeat: »{')],
      '`most` is missing',
    ],
    [
      [`name: a, repeat: { until: 'true', every: 1m, most: »0 }, ${EXEC}`],
      'expected a whole number from 1 to 10000, not the number 0',
    ],
    [
      [`name: a, repeat: { until: '»inputs', every: 1m, most: 2 }, ${EXEC}`],
      '`until` must give a bool, but this gives map',
    ],
    [
      [`name: a, repeat: { until: 'result.»json == 1', every: 1m, most: 2 }, ${EXEC}`],
      'a result has no `json`: it has text, data, files',
    ],
    [
      [`name: a, repeat: { until: phases.»a.data.x == 1, every: 1m, most: 2 }, ${EXEC}`],
      '`a` cannot use its own result; in `until` it is `result`; to follow a link or a cursor, let a team call itself: see docs/write-a-team.md, "Page by page"',
    ],
    [
      [`name: a, when: »result.data.x == 1, ${EXEC}`],
      '`result` exists only in `until` of a `repeat`; the result of a phase is `phases.<name>.data`; to follow a link or a cursor, let a team call itself: see docs/write-a-team.md, "Page by page"',
    ],
    [
      [`name: a, always: true, »repeat: { until: 'true', every: 1m, most: 2 }, ${EXEC}`],
      'a phase with `always` cannot be repeated, because no cancel would end its waits: repeat a phase before it',
    ],
    [
      ["name: a, type: gate, review: { prompt: x }, »repeat: { until: 'true', every: 1m, most: 2 }"],
      'a gate cannot be repeated: put its commands into an `exec` phase before it',
    ],
    [
      ["name: a, type: map, items: [], team: ./c, »repeat: { until: 'true', every: 1m, most: 2 }"],
      'a map cannot be repeated: repeat a `team` phase whose team has the map',
    ],
    [
      [
        "name: a, agent: issues, action: add_comment, »repeat: { until: 'true', every: 1m, most: 2 }, target_entries: [{ name: e, ref: X-1, file: f }]",
      ],
      '`repeat` would write what the entry `e` writes in each turn, and it is `once`: only reads and writes with the effect `idempotent` can be repeated',
    ],
    [[`name: a, limit: { count: »0, per: 1s }, ${EXEC}`], 'expected a whole number from 1 to 100000, not the number 0'],
    [[`name: a, limit: { count: 1, per: »0s }, ${EXEC}`], 'a limit needs a time above 0'],
    [
      ['name: a, type: gate, review: { prompt: x }, »timeout: 5m'],
      'a gate without `commands` runs nothing: write `timeout` inside `review`',
    ],
    [
      [
        'name: a, agent: exec, commands: [{ name: b, run: x }, { name: c, run: x, effect: once }], »retry: { attempts: 2 }',
      ],
      '`retry` would run the command `c` again, which is `once`: put that command into a phase of its own without `retry`',
    ],
    [
      [`name: a, when: »secrets.x == 'y', ${EXEC}`],
      'secrets can be used only in `env` and in the entry fields of agents, so that none gets into a record',
    ],
    [
      ["name: a, type: map, items: '{{ »secrets.x }}', team: ./c"],
      'secrets can be used only in `env` and in the entry fields of agents, so that none gets into a record',
    ],
    [
      ["name: a, agent: exec, env: { A: '{{ »secrets.my-key }}' }, commands: [{ name: c, run: x }]"],
      "a name with a hyphen is written secrets['my-key']",
    ],
    [
      ["name: a, agent: exec, env: { A: '{{ »secrets }}' }, commands: [{ name: c, run: x }]"],
      "name a secret by `secrets.<name>` or `secrets['<name>']`",
    ],
    [
      ["name: a, agent: http, sources: [{ name: e, url: '{{ »file(run.id) }}' }]"],
      '`file()` can be called only in `env`, where a command needs the absolute path',
    ],
    [
      ['name: a, agent: issues, action: »serch, sources: [{ name: e, ref: x }]'],
      'agent `issues` has no action `serch` (did you mean `search`?): one of search, add_comment',
    ],
    [['»name: a, agent: issues, sources: [{ name: e, ref: x }]'], '`action` is missing: one of search, add_comment'],
    [
      ['name: a, agent: http, »action: get, sources: [{ name: e, url: x }]'],
      'agent `http` has no actions: remove this',
    ],
    [
      ['name: a, agent: store, action: »delet, target_entries: [{ name: e, ref: x }]'],
      'agent `store` has no action `delet` (did you mean `delete`?): one of list, delete',
    ],
    [['name: a, agent: store, target_entries: [»{ name: e, ref: x }]'], '`file` is missing'],
    [['»name: a, agent: issues, action: search'], '`sources` is missing'],
    [['»name: a, agent: http'], '`sources` or `target_entries` is missing'],
    [
      ['name: a, agent: issues, action: search, »target_entries: [{ name: e, ref: x }]'],
      '`search` reads: it takes `sources`, not `target_entries`',
    ],
    [
      ['name: a, agent: wiki, action: update_page, »sources: [{ name: e }]'],
      '`update_page` writes: it takes `target_entries`, not `sources`',
    ],
    [
      ['name: a, agent: git, action: create_pr, »sources: [{ name: e }]'],
      '`create_pr` takes fields on the phase itself, not `sources`',
    ],
    [['name: a, agent: git, action: create_pr, »titel: x'], 'unknown field `titel` (did you mean `title`?)'],
    [['name: a, agent: git, action: create_pr, draft: »maybe'], 'expected true or false, not the text "maybe"'],
    [['name: a, agent: issues, action: search, sources: »[]'], 'expected at least 1 in this list'],
    [['name: a, agent: issues, action: search, sources: [»{ name: e }]'], '`ref` is missing'],
    [
      ['name: a, agent: issues, action: search, sources: [{ name: e, ref: x, »limt: 1 }]'],
      'unknown field `limt` (did you mean `limit`?)',
    ],
    [
      ['name: a, agent: issues, action: search, sources: [{ name: e, ref: x, limit: »many }]'],
      'expected a whole number from 1 to 10000, not the text "many"',
    ],
    [
      ['name: a, agent: http, sources: [{ name: e, url: x, retries: »-1 }]'],
      'expected a whole number of at least 0, not the number -1',
    ],
    [
      ['name: a, agent: issues, action: search, sources: [{ name: e, ref: x, limit: »"{{ 1 }}0" }]'],
      'expected a whole number from 1 to 10000, not text with a template in it',
    ],
    [
      ['name: a, agent: issues, action: search, sources: [{ name: e, ref: x }, { name: »e, ref: y }]'],
      'another entry of this phase is named `e`',
    ],
    [
      ['name: a, agent: issues, action: search, sources: [{ name: »"{{ run.id }}", ref: x }]'],
      'templates are not read here',
    ],
    [
      ['name: a, agent: issues, action: search, sources: [{ name: e, ref: x, filter: »"a = \'{{ run.id }}\'" }]'],
      'templates are not read here: put the value into `ref`',
    ],
    [
      ['name: a, agent: issues, action: search, sources: [{ name: e, ref: x, filter: »"{{ run.id }}" }]'],
      'templates are not read here: put the value into `ref`',
    ],
    [
      ['name: a, agent: issues, action: search, sources: [»"{{ run }}"]'],
      'templates are not read here: put the value into `ref`',
    ],
    [
      ['name: a, agent: issues, action: search, sources: »"{{ [run] }}"'],
      'templates are not read here: put the value into `ref`',
    ],
    [
      ['name: a, agent: »issues@, action: search, sources: [{ name: e, ref: x }]'],
      'write `issues`, or `issues@<account>` for another account',
    ],
    [
      ['name: a, agent: wiki, action: update_page, target_entries: [{ name: e, ref: 1, title: »2024, file: x }]'],
      'expected text, not the number 2024: write it in quotes, "2024"',
    ],
    [['»name: a, type: gate'], 'a gate needs `commands`, a `review`, or both'],
    [
      ['name: a, agent: http, target_entries: [»{ name: e, url: x }]'],
      '`file` or `body` is missing: give one of them (a request without content has `body: ""`)',
    ],
    [
      ['name: a, agent: http, target_entries: [»{ name: e, url: x, file: f, body: b }]'],
      '`file` and `body` exclude each other: give one of them',
    ],
    [['name: a, type: gate, review: »{ reviewers: [any] }'], '`prompt` is missing'],
    [['»name: a, review: { prompt: x }'], '`type: gate` is missing'],
    [['»name: a, type: team'], '`team` is missing'],
    [['»name: a, team: ./c'], '`type: team` is missing'],
    [['»name: a, type: map, team: ./c'], '`items` is missing'],
    [
      ["name: a, type: gate, review: { prompt: x, inputs: [{ name: b, default: »'{{ phases.x.text }}' }] }"],
      IN_DEFAULT,
    ],
    [["name: a, type: gate, review: { prompt: x, inputs: [{ name: b, choices: [»'{{ inputs.x }}'] }] }"], IN_CHOICES],
    [
      ['name: a, type: map, team: ./c, items: »inputs.names'],
      'expected a list, not the text "inputs.names": write it as a template, "{{ inputs.names }}"',
    ],
    [
      [
        `name: b, ${EXEC}`,
        `name: a, type: map, depends_on: [b], team: ./c, items: »"phases['b'].data.items.filter(i, i.open)"`,
      ],
      `expected a list, not the text "phases['b'].data.items.filter(i, i.open)": write it as a template, "{{ phases['b'].data.items.filter(i, i.open) }}"`,
    ],
    [
      ['name: a, agent: issues, action: search, sources: [{ name: e, ref: x, limit: »inputs.most }]'],
      'expected a whole number from 1 to 10000, not the text "inputs.most": write it as a template, "{{ inputs.most }}"',
    ],
    [['name: a, type: map, team: ./c, items: »3'], 'expected a list, not the number 3'],
    [['name: a, type: map, team: ./c, items: "{{ »3 }}"'], '`items` must give a list, but this gives int'],
    [
      ['name: a, type: map, team: ./c, items: "{{ »item }}"'],
      '`item` exists only in the `key`, `inputs` and `phases` of a map',
    ],
    [['name: a, type: team, team: »./gone'], 'there is no team.yml in gone'],
    [['name: a, type: team, team: »gone'], 'expected a folder (./name or ../name) or a package (@scope/name[@range])'],
    [['name: a, type: team, team: »./c/team.yml'], 'name the folder that holds the team.yml, not the file'],
    [['name: a, type: team, team: »../c'], 'this path must stay inside the package'],
    [['name: a, type: team, team: »"@x/y@^1"'], 'there is no package @x/y@^1 here'],
    [
      ['name: a, agent: chat, notify: [»on_complet]'],
      'expected one of on_start, on_complete, on_fail, on_cancel, on_escalate, on_phase_start, on_phase_complete, on_phase_fail, not the text "on_complet" (did you mean `on_complete`?)',
    ],
    [
      ['name: a, agent: http, »notify: [on_complete]'],
      'agent `http` handles no events: of those here, issues and chat do',
    ],
    [
      [`name: b, ${EXEC}`, 'name: a, agent: chat, depends_on: [b], »notify: [on_fail]'],
      '`notify` cannot be combined with `depends_on`: a phase either listens to events or runs among the others',
    ],
    [
      ['name: a, agent: chat, notify: [on_fail]', `name: b, depends_on: [»a], ${EXEC}`],
      '`a` is a listener: nothing can depend on it',
    ],
    [
      ['name: a, agent: chat, notify: [on_fail]', `name: b, when: phases.»a.state == 'x', ${EXEC}`],
      '`a` is a listener: it has no result',
    ],
    [['name: a, agent: issues, notify: { on_fail: »{ action: add_comment } }'], '`ref` is missing'],
    [
      ['name: a, agent: issues, notify: { on_fail: { action: »close, ref: X-1 } }'],
      'expected one of add_comment, transition, not the text "close"',
    ],
    [
      ['name: a, agent: chat, notify: { on_fail: { »chanels: [x] } }'],
      'unknown field `chanels` (did you mean `channels`?)',
    ],
    [['name: a, agent: chat, notify: { on_fail: { when: »1 + 1 } }'], '`when` must give a bool, but this gives int'],
    [['»name: a, notify: [on_fail]'], '`agent` is missing'],
    [
      ['name: a, type: gate, »approval: {}, review: { prompt: x }'],
      'unknown field `approval` (did you mean `review`?)',
    ],
  ]
  test.each(cases)('%s', async (lines, problem) => {
    const others = { 'c/team.yml': phasesOf(`name: a, ${EXEC}`) }
    const { text, place } = unmark(phasesOf(...lines))
    expect(await problems(text, others)).toEqual([`${place} ${problem}`])
  })
})

test('a phase of another pipeline, without an agent, has its other mistakes reported too', async () => {
  expect(await problems(phasesOf('name: a, needs: [b], if: x, steps: []', `name: b, ${EXEC}`))).toEqual([
    '4:5 `agent` is missing',
    '4:16 unknown field `needs` (did you mean `depends_on`?)',
    '4:28 unknown field `if` (did you mean `when`?)',
    '4:35 unknown field `steps` (did you mean `commands`?)',
  ])
})

test('an agent whose own field every phase has is named before it is called', async () => {
  const definition = agent({
    ...{ type: 'connector', version: '1.0.0', description: 'A test agent.' },
    phase: {
      effect: 'idempotent',
      entry: Type.Object({ timeout: Type.String() }),
      run: async () => ({ text: 'done' }),
    },
  })
  const files = new Map([['team.yml', phasesOf('name: a, agent: sign, timeout: 5m')]])
  const loading = loadBundle(files, { agents: { get: () => definition, names: () => ['sign'] } })
  expect(problemsOf(await loading.catch(error => error))).toMatchObject([
    {
      column: 23,
      message: 'this agent has `timeout` of its own, which every phase has: give it another name in the agent',
    },
  ])
})

test('what an input or a phase can never be', async () => {
  const text = `${HEAD}inputs: [{ name: n, type: number }]
phases:
  - { name: a, when: "inputs.n == '3'", ${EXEC} }
  - { name: b, depends_on: [a], when: "phases.a.state == 'success'", ${EXEC} }
`
  expect(await problems(text)).toEqual([
    '5:35 input `n` is a number and is compared with text here',
    expect.stringContaining('6:58 a phase is never `success` (did you mean `completed`?)'),
  ])
})

describe('inputs and outputs', () => {
  const cases: [inputs: string, problem: string][] = [
    [
      '{ name: a, type: »strng }',
      'expected one of string, number, boolean, list, object, file, not the text "strng" (did you mean `string`?)',
    ],
    ['{ name: a, type: number, default: »x }', 'expected a number, not text'],
    ['{ name: a, choices: [x, »1] }', 'expected text, not a number'],
    ['{ name: a, choices: [x], default: »y }', 'expected one of "x"'],
    [
      '{ name: a, secret: true, default: »y }',
      'a secret input must not have a default, which would be readable in the file',
    ],
    ["{ name: a, default: »'{{ inputs.b }}' }", IN_DEFAULT],
    ["{ name: a, type: list, default: [x, { y: »'on {{ run.name }}' }] }", IN_DEFAULT],
    ["{ name: a, type: number, default: »'{{ size(inputs.b) }}' }", IN_DEFAULT],
    ["{ name: a, choices: [x, »'{{ inputs.b }}'] }", IN_CHOICES],
    ['{ name: a, secret: »true, type: list }', 'a secret input must be of type string, not list'],
    ['{ name: a }, { name: »a }', 'another input is named `a`'],
  ]
  test.each(cases)('%s', async (inputs, problem) => {
    const { text, place } = unmark(`${HEAD}inputs: [${inputs}]\nphases: [{ name: p, ${EXEC} }]`)
    expect(await problems(text)).toEqual([`${place} ${problem}`])
  })

  test('a template of another program may be a default', async () => {
    const inputs = "inputs: [{ name: a, default: '{{ .Names }} {{ user }} {{ item_count }}' }]"
    expect(await problems(`${HEAD}${inputs}\nphases: [{ name: p, ${EXEC} }]`)).toEqual([])
  })

  test('outputs may name any phase, listeners aside', async () => {
    const text = `${HEAD}phases: [{ name: p, ${EXEC} }, { name: l, agent: chat, notify: [on_fail] }]\noutputs:\n`
    expect(await problems(`${text}  - { name: a, value: "{{ phases.p.text }}" }`)).toEqual([])
    expect(await problems(`${text}  - { name: a, value: "{{ phases.l.text }}" }`)).toEqual([
      '5:34 `l` is a listener: it has no result',
    ])
  })
})

describe('what is accepted', () => {
  const cases: [title: string, lines: string[]][] = [
    ['an account of an agent', ['name: a, agent: issues@eu, action: search, sources: [{ name: e, ref: 12 }]']],
    [
      'a template for a number',
      ['name: a, agent: issues, action: search, sources: [{ name: e, ref: x, limit: "{{ 1 + 1 }}" }]'],
    ],
    ['a template for a list', ['name: a, agent: git, action: create_pr, labels: "{{ [run.id] }}"']],
    ['when in braces', [`name: a, when: '{{ run.name == null }}', ${EXEC}`]],
    ['when as a bool', [`name: a, when: false, ${EXEC}`]],
    [
      'an ancestor that is no parent',
      [
        `name: a, ${EXEC}`,
        `name: b, depends_on: [a], ${EXEC}`,
        `name: c, depends_on: [b], when: phases.a.state == 'x', ${EXEC}`,
      ],
    ],
    ['chat in order', [`name: a, ${EXEC}`, "name: b, agent: chat, depends_on: [a], message: '{{ phases.a.text }}'"]],
    [
      'a listener that names any phase',
      [
        `name: a, ${EXEC}`,
        "name: b, agent: chat, notify: { on_fail: { when: phases.a.state == 'failed', message: '{{ phases.a.text }}' } }",
      ],
    ],
    [
      'fields on a listener serve its events',
      ['name: b, agent: issues, ref: X-1, notify: { on_fail: { action: add_comment } }'],
    ],
    [
      "braces that are a command's own",
      ["name: a, agent: exec, commands: [{ name: c, run: 'docker ps --format {{.Names}} && gh {{{{ x }}}}' }]"],
    ],
    [
      'retry where every command may run again',
      ['name: a, agent: exec, retry: { attempts: 3 }, commands: [{ name: c, run: x, effect: idempotent }]'],
    ],
    [
      'a repeat of what may be repeated',
      [
        `name: a, ${EXEC}`,
        "name: b, agent: http, depends_on: [a], sources: [{ name: e, url: x }], repeat: { until: result.data.json.state == 'done' || phases.a.text == '', every: 30s, most: 40 }",
        `name: c, repeat: { until: size(result.files) > 0, every: 0s, most: 1 }, ${EXEC}`,
      ],
    ],
    [
      'a timeout on a gate with commands',
      ['name: a, type: gate, timeout: 5m, commands: [{ name: c, run: x }], review: { prompt: x }'],
    ],
    [
      'named secrets in env and entry fields',
      [
        "name: a, agent: exec, env: { A: '{{ secrets.a }}' }, commands: [{ name: c, run: x, env: { B: '{{ secrets.b }}' } }]",
        "name: b, type: gate, env: { A: '{{ secrets.a }}' }, commands: [{ name: c, run: x, env: { B: '{{ secrets.b }}' } }]",
        "name: c, agent: http, sources: [{ name: e, url: x, headers: { A: '{{ secrets.a }}' } }]",
        "name: d, agent: git, action: create_pr, title: '{{ secrets.a }}'",
        "name: e, agent: chat, notify: { on_fail: { message: '{{ secrets.a }}' } }",
      ],
    ],
    [
      'a union and a record',
      [
        'name: a, agent: http, sources: [{ name: e, url: x, expect_status: [200, 404], headers: { A: b }, body: { c: 1 } }]',
      ],
    ],
  ]
  test.each(cases)('%s', async (_, lines) => expect(await problems(phasesOf(...lines))).toEqual([]))

  test("a command's own braces reach it as they are", async () => {
    const { phases } = await team(
      phasesOf(
        "name: a, type: gate, commands: [{ name: c, run: 'x {{.Names}}' }]",
        "name: b, agent: exec, commands: [{ name: c, run: 'x {{.Names}} {{{{' }]",
      ),
    )
    expect(phases[0]).toMatchObject({ commands: [{ run: 'x {{.Names}}' }] })
    expect(phases[1]).toMatchObject({ fields: { constant: { commands: [{ run: 'x {{.Names}} {{{{' }] } } })
  })
})

describe('what YAML reads itself is told by what to write', () => {
  const cases: [text: string, problem: string][] = [
    ['name: @local/x\n', '1:7 a value that begins with @ must be in quotes: "@local/x"'],
    ['version: 1.0\n', '1:10 expected a version of three numbers, such as 1.0.0, not the number 1.0'],
    ['version: "1.0"\n', '1:10 expected a version of three numbers, such as 1.0.0, not the text "1.0"'],
    ['a: {{ inputs.x }}\n', '1:4 a value that begins with `{{` must be in quotes: "{{ inputs.x }}"'],
    ['a: {{ inputs["x"] }}/b\n', '1:4 a value that begins with `{{` must be in quotes: "{{ inputs[\'x\'] }}"'],
    ['a: [{ b: {{ inputs.x }} }]\n', '1:10 a value that begins with `{{` must be in quotes: "{{ inputs.x }}"'],
    ['a: `x`\n', '1:4 a value that begins with ` must be in quotes: "`x`"'],
    ['a: %x\n', '1:4 a value that begins with % must be in quotes: "%x"'],
    ['a: !inputs.x\n', '1:13 tags are not supported: a value that begins with ! must be in quotes'],
    ['a: *.md\n', '1:4 there is no anchor &.md before this alias: a text that begins with * must be in quotes'],
    ['a: b ? c: d\n', '1:4 a value that contains a colon and a space must be in quotes'],
  ]
  test.each(cases)('%s', async (text, problem) => expect(await problems(text)).toContain(problem))
})

describe('files of outputs', () => {
  const outputs = (...values: string[]) =>
    `${HEAD}phases: [{ name: p, ${EXEC} }, { name: q, ${EXEC} }]\noutputs:\n${values
      .map((value, at) => `  - { name: o${at}, type: file, value: "${value}" }\n`)
      .join('')}`

  test('two of one base name are a mistake', async () => {
    expect(await problems(outputs('files/p/a.md', 'files/q/a.md'))).toEqual([
      '6:36 output `o0` already has a file named a.md: give one of them another name',
    ])
    expect(await problems(outputs('files/p/{{ run.id }}/a.md', 'a.md'))).toHaveLength(1)
  })

  test('others are none', async () => {
    const values = ['files/p/a.md', 'files/p/b.md', '{{ phases.p.files[0].path }}', "{{ run.id + '/a.md' }}"]
    expect(await problems(outputs(...values))).toEqual([])
    expect(await problems(outputs('files/p/a.md', 'x').replaceAll('type: file', 'type: string'))).toEqual([])
  })
})

test('a team knows the named secrets that it reads, and where its phases are', async () => {
  const compiled = await team(
    phasesOf(
      "name: b, agent: exec, env: { A: '{{ secrets.z }}', B: '{{ secrets.a + secrets.z }}' }, commands: [{ name: c, run: x }]",
      'name: l, agent: chat, notify: { on_fail: { message: \'{{ secrets["the-hook"] }}\' } }',
      `name: a, ${EXEC}`,
    ),
  )
  expect(compiled.secrets).toEqual(['z', 'a', 'the-hook'])
  expect(['b', 'a', 'l', 'x'].map(name => compiled.position(name))).toEqual([0, 1, -1, -1])
})

test('a team compiles to what it says', async () => {
  const { phases, listeners, concurrency, timeout } = await team(`${HEAD}concurrency: 3
timeout: 1h30m
phases:
  - { name: a, ${EXEC}, retry: { attempts: 3, backoff: 500ms }, timeout: 5s, on_failure: continue }
  - { name: l, agent: chat@team, notify: [on_fail, on_start] }
  - { name: b, ${EXEC}, depends_on: [a], always: true }
`)
  expect({ concurrency, timeout }).toEqual({ concurrency: 3, timeout: 5_400_000 })
  expect(phases.map(({ name, index, dependsOn, dependants }) => ({ name, index, dependsOn, dependants }))).toEqual([
    { name: 'a', index: 0, dependsOn: [], dependants: [1] },
    { name: 'b', index: 1, dependsOn: [0], dependants: [] },
  ])
  expect(phases[0]).toMatchObject({
    retry: { attempts: 3, backoff: 500 },
    timeout: 5_000,
    onFailure: 'continue',
    always: false,
  })
  expect(phases[1]).toMatchObject({ retry: { attempts: 1, backoff: 2_000 }, onFailure: 'fail', always: true })
  expect(listeners.map(({ name, agent, on }) => [name, agent, Object.keys(on)])).toEqual([
    ['l', 'chat@team', ['on_fail', 'on_start']],
  ])
})

describe('size', () => {
  const long = (count: number) =>
    phasesOf(
      ...Array.from(
        { length: count },
        (_, at) =>
          `name: p${at}, depends_on: [${at ? `p${at - 1}` : ''}], when: ${at ? `phases.p0.state == 'completed'` : 'true'}, ${EXEC}`,
      ),
    )

  test('1,000 phases pass', async () => {
    expect((await load(long(1_000))).team('.').phases).toHaveLength(1_000)
  })

  test('1,001 do not', async () => expect(await problems(long(1_001))).toEqual(['1004:5 expected at most 1000']))
})

test('a comma that ends a text within braces is told as that', async () => {
  const text = `name: '@local/t'
version: 1.0.0
inputs:
  - { name: folder, type: string, description: The folder with the files, in the workspace }
phases:
  - { name: a, agent: exec, commands: [{ name: a, run: ls }] }
`
  expect(await problems(text)).toEqual([
    '4:75 unknown field `in the workspace`: a comma ends a text within { }, so put the text before it in quotes',
  ])
})
