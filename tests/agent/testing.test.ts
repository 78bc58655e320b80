// The suite of cadre/testing finds what is wrong: the agent of the template with one fault each, and the check that must
// fail. All of them are tested in one process of their own, as an author would.

import { beforeAll, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { agentSource, homeConfig, testSource } from '../../lib/daemon/cli/teams/agent-template.ts'
import { ROOT } from '../../lib/program/install-root.ts'
import { folder } from '../support/folder.ts'

interface Fault {
  /** What stands in the template, and what the fault makes of it. */
  change: [from: string, to: string][]
  /** Of checks that must fail, the beginnings of their names. */
  fails: string[]
  /** What the author says of the vendor. */
  traits?: string
}

const GET = 'await api(context)(`get item ${ref}`, pathOf(ref), { reply: Item })'
const PUT = "await api(context)(`put item ${ref}`, pathOf(ref), { method: 'PUT', body, reply: Item })"
const PUT_RESULT = 'return { text: `wrote item ${ref}`, data: { id: ref } }\n      },'
const once = (find: string): [string, string][] => [
  ["effect: 'idempotent'", "effect: 'once'"],
  [PUT_RESULT, `return { text: \`wrote item \${ref}\`, data: { id: ref }, external: { id: ref } }\n      },\n${find}`],
]
/** With another key nothing is found: the item's text has it. */
const FIND = `async find({ ref }, context) {
  const reply = await context.fetch(context.settings.base_url + pathOf(ref), { headers: { authorization: 'Bearer ' + context.settings.api_token } })
  if (reply.status === 404 || !(await reply.text()).includes(context.key)) return null
  return { text: 'found it', data: { id: ref }, external: { id: ref } }
},`
const KEYED: [string, string] = [
  '{ text: await readText(context, file, MOST) }',
  '{ text: (await readText(context, file, MOST)) + context.key }',
]

const FAULTS: Record<string, Fault> = {
  sound: { change: [], fails: [] },
  once: { change: [...once(FIND), KEYED], fails: [] },
  'any-reply': {
    change: [[GET, GET.replace(', { reply: Item }', '')]],
    fails: ['get_item > on a bad day of the vendor > {"hello"'],
  },
  'open-entry': {
    change: [['entry: entryOf({ ref: Ref }),', 'entry: Type.Object({ name: Ref, ref: Ref }),']],
    fails: ['get_item > refuses an unknown field'],
  },
  'empty-on-failure': {
    change: [[GET, `${GET}.catch(() => ({}))`]],
    fails: ['get_item > on a bad day of the vendor > 404', 'get_item > fails with a credential'],
  },
  'well-when-stopped': {
    change: [[GET, `${GET}.catch(error => { if (context.signal.aborted) return { text: '' }; throw error })`]],
    fails: ['get_item > on a bad day of the vendor > no reply is left when the run is stopped'],
  },
  nameless: { change: [['`get item ${ref}`', "'get it'"]], fails: ['get_item > on a bad day of the vendor > 404'] },
  'shows-token': {
    change: [['text: `item ${ref}`', 'text: `item ${ref} by ${context.settings.api_token}`']],
    fails: ['get_item > shows no credential'],
  },
  'cuts-token': {
    change: [['text: `item ${ref}`', 'text: `item ${ref} by ${context.settings.api_token.slice(0, 10)}`']],
    fails: ['get_item > shows no credential'],
  },
  'no-json': {
    change: [['text: `item ${ref}`, data: { id: ref }', 'text: `item ${ref}`, data: { id: new Date() as never }']],
    fails: ['get_item > gives a line for people and plain JSON'],
  },
  'untrue-data': {
    change: [['text: `item ${ref}`, data: { id: ref }', 'text: `item ${ref}`, data: { id: ref, more: item.text }']],
    fails: ['get_item > gives a line for people and plain JSON'],
  },
  'lost-data': {
    change: [['text: `item ${ref}`, data: { id: ref }', 'text: `item ${ref}`']],
    fails: ['get_item > gives a line for people and plain JSON'],
  },
  'too-large': {
    change: [['text: `item ${ref}`, data: { id: ref }', "text: `item ${ref}`, data: { id: 'x'.repeat(1_048_577) }"]],
    fails: ['get_item > gives a line for people and plain JSON'],
  },
  'undefined-text': {
    change: [['text: `item ${ref}`', 'text: `item ${(item as { id?: string }).id}`']],
    fails: ['get_item > gives a line for people and plain JSON'],
  },
  'reads-target': { change: [["effect: 'idempotent'", "effect: 'read'"]], fails: ['put_item > declares an effect'] },
  'bare-fetch': {
    change: [
      [
        GET,
        "await (await fetch(context.settings.base_url + pathOf(ref), { headers: { authorization: `Bearer ${context.settings.api_token}`, 'x-token': context.settings.api_token }, signal: context.signal })).json()",
      ],
    ],
    fails: [
      'get_item > sends no credential where the vendor redirects',
      'get_item > on a bad day of the vendor > 404',
      'get_item > on a bad day of the vendor > 429 with Retry-After',
    ],
  },
  'phase-with-name': {
    change: [["direction: 'target'", "direction: 'phase'"]],
    fails: ['put_item > leaves to the phase'],
  },
  'wrong-hint': {
    change: [
      [
        GET,
        `${GET}.catch(error => { throw new AgentError(error.message, { code: error.code, retryable: error.retryable }) })`,
      ],
      ['type AgentContext, agent', 'type AgentContext, AgentError, agent'],
    ],
    fails: ['get_item > on a bad day of the vendor > 401', 'get_item > fails with a credential'],
  },
  'silent-doctor': {
    change: [
      [
        'return { who: name, missing: [], text: context.settings.base_url }',
        "return { who: name, missing: ['read'], text: context.settings.base_url }",
      ],
    ],
    fails: ['doctor says that all is well'],
  },
  'sends-again': {
    change: [...once(''), [PUT, `${PUT}.catch(() => ${PUT.replace('await ', '')})`]],
    fails: ['put_item > does not send again', 'put_item > on a bad day of the vendor > 500'],
  },
  'finds-always': {
    change: once("async find({ ref }) { return { text: 'found it', data: { id: ref }, external: { id: ref } } },"),
    fails: ['put_item > finds nothing before', 'put_item > finds what it wrote, and nothing'],
  },
  'finds-never': {
    change: once('async find() { return null },'),
    fails: ['put_item > finds what it wrote, and nothing', 'put_item > finds what it wrote when the reply was lost'],
  },
  'lags-and-waits': { change: [...once(FIND), KEYED], fails: [], traits: 'lags: 3, ' },
  'lags-and-settles-early': {
    change: [...once(`settles: '1s', ${FIND}`), KEYED],
    fails: ['put_item > is not written twice where its search lags'],
    traits: 'lags: 6, ',
  },
  'lags-and-is-believed': {
    change: [...once(`sees: 'at once', ${FIND}`), KEYED],
    fails: ['put_item > is not written twice where its search lags'],
    traits: 'lags: 1, ',
  },
  'counts-too-early': {
    change: [...once(`settles: '1s', ${FIND}`), KEYED],
    fails: ['put_item > is not written twice when it lands 3 s', 'put_item > is not written twice when it lands 30 s'],
  },
  'counts-at-once': {
    change: [...once(`sees: 'at once', ${FIND}`), KEYED],
    fails: [
      'put_item > is not written twice when it lands 0.1 s',
      'put_item > is not written twice when it lands 30 s',
    ],
  },
  'finds-other-data': {
    change: [...once(FIND.replace('data: { id: ref }', "data: { id: 'x' }")), KEYED],
    fails: ['put_item > finds what it wrote, and nothing'],
  },
  'without-external': {
    change: [
      ...once(FIND.replace(', external: { id: ref }', '')),
      [', external: { id: ref } }\n      },', ' }\n      },'],
      KEYED,
    ],
    fails: ['put_item > finds what it wrote, and nothing'],
  },
  'finds-what-repeats': {
    change: [...once(FIND).slice(1), KEYED],
    fails: ['put_item > declares an effect'],
  },
  'plain-credential': {
    change: [['authorization: `Bearer ${api_token}`', "authorization: `Bearer ${api_token}`, 'x-api-key': base"]],
    fails: ['get_item > declares as `secret()` every setting', 'put_item > declares as `secret()` every setting'],
  },
  'certain-too-early': {
    change: [
      ...once(''),
      [
        PUT,
        `${PUT}.catch(error => { throw new AgentError(error.message, { code: error.code, retryable: error.retryable, hint: error.hint, sent: 'no' }) })`,
      ],
      ['type AgentContext, agent', 'type AgentContext, AgentError, agent'],
    ],
    fails: [
      'put_item > does not send again what may have been written: its reply is lost',
      'put_item > on a bad day of the vendor > 500',
    ],
  },
}

const home = folder()
let said: string[] = []
beforeAll(async () => {
  for (const path of ['agents', 'tests']) mkdirSync(join(home, path))
  writeFileSync(join(home, 'tsconfig.json'), homeConfig(ROOT, join(ROOT, 'node_modules')))
  for (const [name, { change, traits = '' }] of Object.entries(FAULTS)) {
    const source = change.reduce((text, [from, to]) => {
      expect(text).toContain(from)
      return text.replace(from, () => to)
    }, agentSource(name))
    writeFileSync(join(home, 'agents', `${name}.ts`), source)
    const itsTest = testSource(name, '../agents')
    expect(itsTest.split('{ allows')).toHaveLength(2)
    writeFileSync(join(home, 'tests', `${name}.test.ts`), itsTest.replace('{ allows', `{ ${traits}allows`))
  }
  const guide = readFileSync(join(ROOT, 'docs/write-an-agent.md'), 'utf8')
  writeNotes(guide)
  const [agent, itsTest] = Array.from(guide.matchAll(/```ts\n([\s\S]*?)```/g), ([, code]) => code!)
  writeFileSync(join(home, 'agents/stock.ts'), agent!)
  writeFileSync(join(home, 'tests/stock.test.ts'), itsTest!)
  const child = Bun.spawn([process.execPath, 'test', 'tests'], { cwd: home, stdout: 'ignore', stderr: 'pipe' })
  said = (await child.stderr.text()).split('\n')
}, 180_000)

/** The agent of the template with the action that the guide adds to it, and a vendor that takes notes. */
function writeNotes(guide: string): void {
  const [, code] = /```ts action\n([\s\S]*?)```/.exec(guide)!
  const [schemas, action] = code!.split('export default agent({\n  actions: {\n') as [string, string]
  const insert = (text: string, before: string, what: string) => {
    expect(text.split(before)).toHaveLength(2)
    return text.replace(before, () => what + before)
  }
  const source = insert(agentSource('notes'), 'export default agent({', schemas)
  writeFileSync(join(home, 'agents/notes.ts'), insert(source, '    get_item: {', action))
  const routes = `      'GET /items/:id/notes': () => ({ notes }),
      'POST /items/:id/notes': ({ body }) => {
        const note = { id: String(notes.length), ...(body as { text: string; key: string }) }
        notes.push(note)
        return note
      },
`
  const example =
    "    add_note: { entry: { name: 'n', ref: '1', file: 'n.md' }, files: { 'n.md': 'new' }, names: '1' },\n"
  let itsTest = insert(testSource('notes', '../agents'), "      'GET /me'", routes)
  itsTest = itsTest.replace('{ allows', '{ lags: 3, pages: 3, allows')
  itsTest = insert(itsTest, '  const vendor = fakeVendor(', '  const notes: { id: string; key: string }[] = []\n')
  writeFileSync(join(home, 'tests/notes.test.ts'), insert(itsTest, '    get_item: { entry', example))
}

const checks = (went: 'pass' | 'fail', name: string) =>
  said.filter(line => line.startsWith(`(${went}) ${name}, as every agent > `))

test('the agents and the test of docs/write-an-agent.md', () => {
  for (const name of ['stock', 'notes']) {
    expect(checks('pass', name).length).toBeGreaterThan(30)
    expect(checks('fail', name)).toEqual([])
  }
  expect(checks('pass', 'notes').join('\n')).toContain('add_note > finds what it wrote when the reply was lost')
})

test.each(Object.entries(FAULTS))('%s', (name, { fails }) => {
  expect(checks('pass', name).length).toBeGreaterThan(30)
  const failed = checks('fail', name)
  for (const check of fails) expect(failed.join('\n')).toContain(` > ${check}`)
  expect(failed.length).toBeGreaterThanOrEqual(fails.length)
  if (fails.length === 0) expect(failed).toEqual([])
})
