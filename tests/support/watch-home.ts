// A home with one watch, for tests that put files into its folder.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { folder } from './folder.ts'
import { type TriggerHome, triggerHome } from './triggers.ts'

/** Files rest for so long, and are looked at in steps of it. */
const REST_MS = 60

export const TEAM = `name: "@local/reader"
version: 1.0.0
inputs: [{ name: file, type: string, default: "" }, { name: hold, type: boolean, default: false }]
phases:
  - { name: ask, type: gate, when: inputs.hold, review: { prompt: "Go on?", reviewers: ["local:ada"] } }
`

export async function watchHome(fields: object = {}, at = folder()) {
  const t = await triggerHome()
  t.write(TEAM)
  const inputs = { file: '{{ files[0].path }}' }
  const spec = { name: 'in', kind: 'watch', team: t.team, folder: at, settle: `${REST_MS}ms`, poll: '100ms', inputs }
  const add = (more: object = {}) =>
    t.triggers.add({ ...spec, ...fields, ...more } as Parameters<typeof t.triggers.add>[0], 'local:ada')
  await add()
  return { t, at, add, put: (name: string, text = name) => writeFileSync(join(at, name), text) }
}

/** Looks until everything that is there now has rested, and was decided about. */
export async function looks(t: TriggerHome, times = 4): Promise<void> {
  for (let n = 0; n < times; n++) {
    await t.watches.look()
    await Bun.sleep(REST_MS)
  }
}

/** Each firing: its files, its state and its reason. */
export const told = (t: TriggerHome, name = 'in'): string[] =>
  t
    .firings(name)
    .map(({ state, reason, files }) =>
      [files!.map(file => file.name).join('+'), state, ...(reason === null ? [] : [reason])].join(' '),
    )
