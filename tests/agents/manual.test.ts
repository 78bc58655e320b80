// The manual of each agent, as `agents NAME` prints it: whoever reads it needs no other source, so everything that can be
// set or written has a description.

import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { discover } from '../../lib/agent/catalogue.ts'
import type { Agent, Handler } from '../../lib/agent/define.ts'
import { callsOf, examplePhase } from '../../lib/daemon/cli/teams/example-phase.ts'
import { manualOf } from '../../lib/daemon/cli/teams/manual.ts'
import { DURATION_PATTERN } from '../../lib/duration.ts'
import { fieldsOf } from '../../lib/settings/settings.ts'
import { loadBundle } from '../../lib/team/compile/bundle.ts'
import { command, files, sourceCommand } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const catalogue = await discover({ home: folder() })

/** A sentence that fits into two or three lines of the manual. */
const described = (schema: object): boolean =>
  /^[A-Z].{0,109}\.$/.test(String((schema as { description?: string }).description ?? ''))

/** What has no description, or one that is no short sentence. */
function undescribed({ settings, actions = {}, source, target, phase, notify }: Agent): string[] {
  const handlers = { ...actions, source, target, phase, notify }
  const calls = Object.entries(handlers).filter((each): each is [string, Handler] => each[1] !== undefined)
  const fields = [['settings', settings] as const, ...calls.map(([name, { entry }]) => [name, entry] as const)]
  const results = calls.flatMap(([name, { data }]) => (data ? [[`data of ${name}`, data] as const] : []))
  return [
    ...calls.filter(([, handler]) => !described(handler)).map(([name]) => name),
    // No phase can read the result of a listener.
    ...calls.filter(([name, { data }]) => name !== 'notify' && !data).map(([name]) => `data of ${name}`),
    ...[...fields, ...results].flatMap(([place, schema]) =>
      fieldsOf(schema)
        // The values of a mapping are described with it.
        .filter(({ name, schema }) => !name.includes('<name>') && !described(schema))
        .map(({ name }) => `${place}: ${name}`),
    ),
  ]
}

describe.each(catalogue.names())('%s', name => {
  const definition = catalogue.get(name)!

  test('every setting, action, field and result has a description', () => {
    expect(undescribed(definition)).toEqual([])
  })

  test('every pattern is put in words', () => {
    const { settings, actions = {}, source, target, phase, notify } = definition
    const calls = Object.values({ ...actions, source, target, phase, notify }).flatMap(each => each?.entry ?? [])
    const fields = [settings, ...calls].flatMap(schema => fieldsOf(schema))
    const bare = fields.filter(({ schema }) => {
      const { pattern, 'x-expected': expected } = schema as { pattern?: string; 'x-expected'?: string }
      return pattern !== undefined && pattern !== DURATION_PATTERN && !expected
    })
    expect(bare.map(({ name }) => name)).toEqual([])
  })

  test('the manual fits into 80 columns and has everything', () => {
    const lines = manualOf(name, definition, 'agents/x.ts')
    expect(lines.filter(line => line.length > 80)).toEqual([])
    const text = lines.join('\n')
    for (const { name } of fieldsOf(definition.settings)) expect(text).toContain(`\n  ${name}`)
    for (const action of Object.keys(definition.actions ?? {})) {
      expect(text).toContain(`\n${action}  ${definition.actions![action]!.direction}  (`)
      expect(text).toContain(`  action: ${action}\n`)
    }
    for (const { data } of Object.values(definition.actions ?? {})) {
      for (const { name } of fieldsOf(data!)) expect(text).toContain(`\n    ${name}`)
    }
    expect(text).not.toMatch(/undefined|\[object/)
  })
})

describe.each(catalogue.names())('a phase of %s', name => {
  const definition = catalogue.get(name)!
  const calls = callsOf(definition).map(call => ({ ...call, words: call.action || call.direction }))

  test.each(calls)('$words is one that validate takes, and nobody has to fill in', async call => {
    const phase = examplePhase(name, call)
    const shown = manualOf(name, definition, 'agents/x.ts').join('\n')
    expect(shown).toContain(['  example:', ...phase.map(line => `    ${line}`)].join('\n'))
    expect(shown).not.toContain('"…"')
    const team = ['name: "@local/a"', 'version: 1.0.0', 'phases:', ...phase.map(line => `  ${line}`), '']
    await loadBundle(new Map([['team.yml', team.join('\n')]]), { agents: catalogue })
  })
})

test('agents NAME --action X prints a phase to paste, and names the nearest of an action that is none', async () => {
  const home = folder()
  const { stdout } = await command(['agents', 'issues@eu', '--action', 'transition'], { home })
  expect(stdout).toBe(
    `  - name: transition
    agent: issues@eu
    action: transition
    target_entries:
      - name: done
        ref: WEB-12
        to: Done
`,
  )
  const team = `name: "@local/a"\nversion: 1.0.0\nphases:\n${stdout}`
  expect((await command(['validate', files({ 'team.yml': team })], { home })).code).toBe(0)
  expect((await command(['agents', 'http', '--action', 'source'], { home })).stdout).toContain('    sources:\n')
  const none = await command(['agents', 'issues', '--action', 'serch'], { home })
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('(did you mean `search`?)')])
  expect((await command(['agents', '--action', 'search'], { home })).code).toBe(2)
})

test('agents NAME prints it, as an account too, and names the nearest of a name that is none', async () => {
  const home = folder()
  const { code, stdout } = await sourceCommand(['agents', 'exec'], { home })
  expect(code).toBe(0)
  expect(stdout).toBe(
    `${manualOf('exec', catalogue.get('exec')!, join(import.meta.dir, '../../agents/exec.ts')).join('\n')}\n`,
  )
  expect(stdout).toContain('  commands[].run          (required) What sh runs in the workspace. Begin')
  expect((await command(['agents', 'issues@eu'], { home })).stdout).toContain('settings set agents.issues@eu.KEY')
  const { stderr, code: none } = await command(['agents', 'wicki'], { home })
  expect([none, stderr]).toEqual([2, expect.stringContaining('(did you mean `wiki`?)')])
  const { stdout: json } = await command(['agents', 'exec', '--json'], { home })
  expect(JSON.parse(json)).toMatchObject({ name: 'exec', phase: { description: expect.any(String) } })
})
