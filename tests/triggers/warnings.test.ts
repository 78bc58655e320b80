// What is said to whoever adds, changes or enables a trigger, and forbids nothing.

import { expect, test } from 'bun:test'
import { files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { type TriggerHome, triggerHome, WATCHED } from '../support/triggers.ts'

const ME = 'local:ada'
const said = (name: string) => `${name} starts this team on the same occasions, too: each of them has a run of both`
type Fields = Parameters<TriggerHome['add']>[0]

/** What is said of a trigger when another one is there. */
async function saidOf(first: Fields & {}, second: Fields & {}): Promise<string[] | undefined> {
  await using t = await triggerHome()
  const { warnings: none } = await t.add({ name: 'first', ...first })
  expect(none?.filter(text => text.startsWith('second')) ?? []).toEqual([])
  const { warnings } = await t.add({ name: 'second', ...second })
  return warnings?.filter(text => text.includes('occasions'))
}

const WATCH = { kind: 'watch', cron: undefined!, tz: undefined! } as const
const CHAIN = { ...WATCH, kind: 'chain', after: '@local/build' } as const
const HOOK = { ...WATCH, kind: 'hook', scheme: 'github', secret: 'a-secret-that-nobody-guesses' } as const
const at = folder()
const watch = (...match: string[]) => ({ ...WATCH, folder: at, match })

test.each([
  ['equal rules, whatever becomes of late slots', {}, { catch_up: 'last', jitter: '1m', inputs: { day: 'x' } }],
  ['one folder with patterns that one file may fit', watch('*.pdf'), { ...watch('a*'), folder: `${at}/` }],
  ['choices in braces', watch('*.{pdf,tiff}'), watch('scan-?.tiff')],
  ['a path and a name', watch('in/*.pdf'), watch('*.pdf')],
  ['ranges', watch('[ab]*.pdf'), watch('b1.pdf')],
  ['chains after the same runs', CHAIN, { ...CHAIN, after: 'build', on: ['failed', 'completed'] }],
] as [string, Fields & {}, Fields & {}][])('the same source is told: %s', async (_, first, second) => {
  expect(await saidOf(first, second)).toEqual([said('first')])
})

test.each([
  ['another rule', {}, { cron: '*/10 * * * *' }],
  ['another zone', { cron: '0 6 * * *' }, { cron: '0 6 * * *', tz: 'Europe/Berlin' }],
  ['other files', watch('*.pdf'), watch('*.txt', 'note.pd')],
  ['other choices', watch('*.{pdf,tiff}'), watch('*.txt')],
  ['other things that happen to files', watch('*'), { ...watch('*'), on: ['removed'] }],
  ['another folder', watch('*'), { ...watch('*'), folder: folder() }],
  ['other ends', CHAIN, { ...CHAIN, on: ['failed'] }],
  ['hooks, of which each has its own address', HOOK, HOOK],
  ['other kinds', CHAIN, {}],
] as [string, Fields & {}, Fields & {}][])('nothing is told: %s', async (_, first, second) => {
  expect((await saidOf(first, second)) ?? []).toEqual([])
})

test('it is told at each change, and only of what is enabled and starts the same team', async () => {
  await using t = await triggerHome()
  await t.add()
  const other = files({ 'team.yml': WATCHED.replace('watched', 'other') })
  expect(await t.add({ name: 'other', team: other })).not.toHaveProperty('warnings')
  const second = await t.add({ name: 'second', cron: '0 6 * * *' })
  expect(second).not.toHaveProperty('warnings')
  const which = { trigger_id: second.id }
  const changed = await t.triggers.update(which, { cron: '*/5 * * * *' }, undefined, ME)
  expect(changed.warnings).toEqual([said('nightly')])
  expect(t.triggers.get(which)).not.toHaveProperty('warnings')
  expect(t.triggers.disable(which, ME)).not.toHaveProperty('warnings')
  expect(await t.triggers.update({ name: 'nightly' }, { queue_max: 2 }, undefined, ME)).not.toHaveProperty('warnings')
  expect((await t.triggers.enable(which, ME)).warnings).toEqual([said('nightly')])
})

const NEEDS = `name: "@local/needs"
version: 1.0.0
phases:
  - { name: a, agent: exec, commands: [{ name: c, env: { KEY: "{{ secrets.vendor_key }}" }, run: "true" }] }
  - { name: b, agent: issues, action: search, sources: [{ name: e, ref: "project = A" }] }
`

test('settings and secrets that the team needs and that are not set are named, and refuse nothing', async () => {
  await using t = await triggerHome()
  const { warnings = [], state } = await t.add({ team: files({ 'team.yml': NEEDS }) })
  expect(state).toBe('active')
  expect(warnings.some(text => text.includes('the secret vendor_key is not set'))).toBe(true)
  expect(warnings.every(text => text.startsWith('no run can start yet: '))).toBe(true)
})

test('a chain after a team that nothing here has is told with the name that was meant', async () => {
  await using t = await triggerHome()
  const unknown =
    'no team @local/wached has run here (did you mean `@local/watched`?): nothing starts before a run of it ends'
  const chain = { kind: 'chain', team: t.team, cron: undefined!, tz: undefined! } as const
  await t.add()
  expect((await t.add({ ...chain, name: 'slip', after: '@local/wached' })).warnings).toEqual([unknown])
  // It has not run yet, and a schedule starts it.
  const other = files({ 'team.yml': WATCHED.replace('watched', 'other') })
  const after = await t.add({ ...chain, name: 'good', team: other, after: 'watched' })
  expect(after.warnings?.filter(text => text.includes('has run here')) ?? []).toEqual([])
})
