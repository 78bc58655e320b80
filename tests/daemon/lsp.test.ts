// The language server as an editor sees it: the program is spoken with over its stdin and stdout. Here are the mistakes that it
// shows, what it reads for that, and how it ends.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Diagnostic } from 'vscode-languageserver'
import { named } from '../../lib/text/unseen.ts'
import { command, files } from '../support/daemon.ts'
import { Editor } from '../support/editor.ts'
import { fencesOf } from '../support/fences.ts'
import { folder } from '../support/folder.ts'

const HEAD = 'name: "@local/a"\nversion: 1.0.0\n'
const team = (...phases: string[]) => `${HEAD}phases:\n${phases.map(each => `  - ${each}\n`).join('')}`
const SOUND = team('{ name: a, agent: exec, commands: [{ name: c, run: ls }] }')

/** `<line>:<column>-<column> <message>`, from 1, as `validate` counts. */
const shown = (found: readonly Diagnostic[]): string[] =>
  found.map(({ range: { start, end }, message }) => {
    const until = end.line === start.line ? end.character + 1 : `${end.line + 1}:${end.character + 1}`
    return `${start.line + 1}:${start.character + 1}-${until} ${message}`
  })

let editor: Editor
const workspace = folder()
const path = join(workspace, 'team.yml')
beforeAll(async () => {
  writeFileSync(path, SOUND)
  editor = await Editor.open({ workspace })
})
afterAll(async () => {
  expect(await editor.end()).toBe(0)
  expect(await editor.process.stderr.text()).toBe('')
})

/** What is shown of a text that is open for a moment. */
async function mistakes(text: string, file = path): Promise<string[]> {
  editor.show(file, text)
  const found = await editor.diagnostics(file)
  editor.close(file)
  expect(await editor.diagnostics(file)).toEqual([])
  return shown(found)
}

test('mistakes of the text that is not saved, each with its range', async () => {
  const text = team(
    '{ name: a, agent: exce, commands: [{ name: c, run: ls }] }',
    '{ name: b, agent: exec, depends_on: [c], when: "true", comands: [] }',
  )
  expect(await mistakes(text)).toEqual([
    expect.stringMatching(/^4:23-27 unknown agent `exce` \(did you mean `exec`\?\)/),
    expect.stringMatching(/^5:5-6 `commands` is missing$/),
    expect.stringMatching(/^5:42-43 there is no phase `c`/),
    expect.stringMatching(/^5:60-67 unknown field `comands` \(did you mean `commands`\?\)/),
  ])
})

test.each([
  ['a line that is being typed', `${SOUND}  - name: b\n    ag\n`],
  ['a text that does not end', `${HEAD}phases:\n  - name: "b\n`],
  ['brackets that do not end', `${HEAD}phases: [{ name: b, `],
  ['a template that does not end', team('{ name: b, agent: exec, env: { A: "{{ inputs." } }')],
  ['a tab', `${HEAD}phases:\n\t- name: b\n`],
  ['an expression', team(`{ name: a, agent: exec, when: "inputs.x == ''", commands: [{ name: c, run: ls }] }`)],
  ['characters of two units before it', team('{ name: a, agent: exec, description: "😀😀", when: "fasle" }')],
  ['nothing', ''],
  ['no team', 'a: 1\n'],
  ['no YAML', '{{{{ : - \u0000'],
  ['anchors', team('&a { name: a, agent: exce, commands: [{ name: c, run: ls }] }', '*a', '*b')],
  ['line breaks of Windows', team('{ name: a, agent: exce }', '{ name: b, type: gat }').replaceAll('\n', '\r\n')],
  ['what a person put into a text', team('{ name: a, agent: "\\u202Eexec" }')],
])(
  '%s: the same mistakes in the same places as `validate`',
  async (_, text) => {
    const file = join(files({ 'team.yml': text }), 'team.yml')
    const { stdout } = await command(['validate', file, '--json'], { home: folder() })
    const { error } = JSON.parse(stdout)
    const expected = error.details.map(({ message }: { message: string }) => named(message.replace(/^team\.yml:/, '')))
    const found = await mistakes(text)
    expect(found.map(each => each.replace(/-[\d:]+ /, ': '))).toEqual(expected)
  },
  20_000,
)

test('a change of a part is applied, and what is mended is shown no more', async () => {
  editor.show(path, team('{ name: a, agent: exce, commands: [{ name: c, run: ls }] }'))
  expect(shown(await editor.diagnostics(path))).toHaveLength(1)
  editor.type(path, 'exec', { start: { line: 3, character: 22 }, end: { line: 3, character: 26 } })
  expect(await editor.diagnostics(path)).toEqual([])
  editor.close(path)
})

test('a sub-team: its mistakes are shown in its file, and a change of it is seen in the team that uses it', async () => {
  const sub = join(workspace, 'sub/team.yml')
  const caller = team('{ name: a, type: team, team: ./sub, inputs: { who: x } }')
  const taking = (name: string) => `${HEAD}inputs: [{ name: ${name} }]\n${SOUND.slice(HEAD.length)}`
  editor.show(path, caller)
  expect(shown(await editor.diagnostics(path))).toEqual(['4:34-39 there is no team.yml in sub'])

  await Bun.write(sub, taking('who').replace('exec', 'exce'))
  editor.changeOnDisk(sub, taking('who').replace('exec', 'exce'))
  expect(shown(await editor.diagnostics(sub))).toEqual([expect.stringMatching(/^5:23-27 unknown agent `exce`/)])
  expect(await editor.diagnostics(path)).toEqual([])

  // Unsaved in the editor.
  editor.show(sub, taking('whom'))
  expect(shown(await editor.diagnostics(path))).toEqual(['4:51-54 @local/a has no input `who` (did you mean `whom`?)'])
  editor.type(sub, taking('who'))
  expect(await editor.diagnostics(path)).toEqual([])
  editor.close(sub)

  // An editor that watches no files says at least what it saves.
  writeFileSync(sub, taking('whose'))
  editor.save(path)
  let now = await editor.diagnostics(path)
  while (now.length === 0) now = await editor.diagnostics(path)
  expect(shown(now)).toEqual([expect.stringContaining('has no input `who`')])
  editor.close(path)
  expect(await editor.diagnostics(path)).toEqual([])
})

test('a team under another name is checked, and other YAML is left alone', async () => {
  const [compose, other] = [join(workspace, 'compose.yml'), join(workspace, 'nightly.yml')]
  editor.show(compose, 'name: x\nversion: "3"\nservices: {}\n')
  writeFileSync(other, SOUND)
  expect(await mistakes(SOUND.replace('exec', 'exce'), other)).toHaveLength(1)
  expect(editor.hasDiagnostics(compose)).toBe(false)
  editor.close(compose)
})

test('notes and secrets that are not set are no errors', async () => {
  const text = team(
    '{ name: a, agent: exec, env: { A: "{{ secrets.token }}" }, commands: [{ name: c, run: ls }] }',
    '{ name: b, agent: exec, commands: [{ name: c, run: "echo \u2066" }] }',
  )
  editor.show(path, text)
  const found = await editor.diagnostics(path)
  editor.close(path)
  expect(found.map(({ severity, range, message }) => [severity, range.start.line, message])).toEqual([
    [3, 4, 'U+2066 stands here, which is not seen as what it is'],
    [2, 3, 'the secret token is not set in settings.yml'],
  ])
})

test('nothing outside of the workspace is read, not through links either, no secret is looked up and no hub is called', async () => {
  const requests: string[] = []
  using hub = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ url }) => new Response(String(requests.push(url))),
  })
  const outside = files({ 'x/team.yml': `${SOUND}# the text of another person` })
  const home = folder()
  const ran = join(home, 'ran')
  const settings = `hub: { url: "${hub.url}", realm_token: "\${cmd:touch ${ran}}" }
secrets: { deploy: "\${cmd:touch ${ran}}", plain: value-of-plain }
agents: { issues@eu: { api_token: value-of-agent } }
environments: { staging: { secrets: { staged: value-of-staged } } }
`
  writeFileSync(join(home, 'settings.yml'), settings, { mode: 0o600 })
  const inside = folder()
  symlinkSync(join(outside, 'x'), join(inside, 'linked'))
  const own = await Editor.open({ home, workspace: inside })
  const file = join(inside, 'team.yml')
  writeFileSync(file, SOUND)
  const text = team(
    `{ name: a, type: team, team: ../${outside.split('/').at(-1)}/x }`,
    '{ name: b, type: team, team: ./linked }',
    '{ name: c, type: team, team: "@acme/far" }',
    '{ name: d, agent: exec, env: { A: "{{ secrets.deploy }}" }, commands: [{ name: c, run: ls }] }',
  )
  own.show(file, text)
  const found = await own.diagnostics(file)
  expect(found.map(({ severity, message }) => [severity, String(message).replace(/^\S+/, '…')])).toEqual([
    [3, '… is outside of what is open in the editor, and is not looked at here'],
    [3, '… is outside of what is open in the editor, and is not looked at here'],
    [3, '… it is not installed here, and an editor asks no hub'],
  ])
  own.close(file)
  const env = (value: string) => team(`{ name: d, agent: exec, env: { A: "${value}" } }`)
  expect(await own.completions(file, env('{{ secrets.| }}'))).toEqual(['deploy', 'plain', 'staged'])
  expect(await own.completions(file, team('{ name: d, agent: issues@| }'))).toContain('issues@eu')
  expect(await own.hover(file, env('{{ secrets.pl|ain }}'))).toContain('is set in settings.yml')
  expect(
    await own.hover(file, team(`{ name: a, type: team, team: ../${outside.split('/').at(-1)}/|x }`)),
  ).not.toContain('@local')
  expect(await own.definition(file, team('{ name: b, type: team, team: ./lin|ked }'))).toBeNull()
  expect(await own.end()).toBe(0)
  expect([existsSync(ran), requests]).toEqual([false, []])
  expect(own.sent).not.toContain('value-of-')
})

test('a file that was opened alone may use what is beside it, and no more', async () => {
  const alone = await Editor.open({ workspace: null })
  const at = files({ 'team.yml': SOUND, 'sub/team.yml': SOUND, 'far/x/team.yml': SOUND, 'far/y/team.yml': SOUND })
  const file = join(at, 'far/x/team.yml')
  alone.show(join(at, 'team.yml'), team('{ name: a, type: team, team: ./sub }'))
  expect(await alone.diagnostics(join(at, 'team.yml'))).toEqual([])
  alone.close(join(at, 'team.yml'))
  alone.show(file, team('{ name: a, type: team, team: ../y }'))
  expect(shown(await alone.diagnostics(file))).toEqual([expect.stringContaining('is outside of what is open')])
  expect(await alone.end()).toBe(0)
})

test('an editor that watches files is asked to', async () => {
  const capabilities = { workspace: { didChangeWatchedFiles: { dynamicRegistration: true } } }
  const watching = await Editor.open({ workspace, capabilities })
  watching.show(path, SOUND)
  await watching.diagnostics(path)
  expect(watching.asked).toMatchObject([
    { method: 'client/registerCapability', params: { registrations: [{ method: 'workspace/didChangeWatchedFiles' }] } },
  ])
  expect(await watching.end()).toBe(0)
})

test('a message that is no JSON is lost alone', async () => {
  const own = await Editor.open({ workspace })
  own.raw('Content-Length: 9\r\n\r\n{ "id": 7')
  own.raw('Content-Length: 2\r\n\r\n[]')
  own.notify('textDocument/didChange', {
    textDocument: { uri: 'file:///never/opened', version: 1 },
    contentChanges: [],
  })
  own.notify('textDocument/didOpen', {
    textDocument: { uri: 'untitled:one', languageId: 'yaml', version: 1, text: SOUND },
  })
  expect(
    own.request('textDocument/hover', { textDocument: { uri: 'untitled:one' }, position: { line: 0, character: 1 } }),
  ).resolves.toBeNull()
  expect(own.request('cadre/unknown')).rejects.toThrow('nhandled method')
  own.show(path, SOUND)
  expect(await own.diagnostics(path)).toEqual([])
  expect(await own.end()).toBe(0)
})

test.each([['GET / HTTP/1.1\r\nHost: x\r\n\r\n'], ['Content-Length: many\r\n\r\n{}']])(
  '%j ends it with words on stderr',
  async text => {
    const own = new Editor(folder())
    own.raw(text)
    expect(await own.process.exited).toBe(1)
    expect(await own.process.stderr.text()).toStartWith('stdin has no messages of the language server protocol: ')
  },
)

test('it ends with its editor: by exit, with its stdin, and when the process is gone', async () => {
  const start = () => Editor.open({ workspace })
  const rude = await start()
  rude.notify('exit')
  expect(await rude.process.exited).toBe(1)

  const gone = await start()
  await gone.process.stdin.end()
  expect(await gone.process.exited).toBe(1)

  const polite = await start()
  await polite.request('shutdown')
  await polite.process.stdin.end()
  expect(await polite.process.exited).toBe(0)

  const parent = Bun.spawn(['sleep', '1000'])
  const orphan = await Editor.open({ workspace, processId: parent.pid })
  parent.kill('SIGKILL')
  await parent.exited
  expect(await orphan.process.exited).toBe(1)
}, 30_000)

test('the lines for editors in the documents start it', () => {
  const fences = fencesOf('docs/editors.md')
  const textOf = (language: string) => fences.find(each => each.language === language)!.text
  const code = JSON.parse(textOf('json'))
  const helix = Bun.TOML.parse(textOf('toml')) as { 'language-server': { cadre: object } }
  expect([code['glspc.server.command'], ...code['glspc.server.commandArguments']]).toEqual(['cadre', 'lsp', '--stdio'])
  expect(helix['language-server'].cadre).toEqual({ command: 'cadre', args: ['lsp', '--stdio'] })
  expect(textOf('lua')).toContain("cmd = { 'cadre', 'lsp', '--stdio' },")
})
