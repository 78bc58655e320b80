// Triggers that a team.yml declares: nothing starts before somebody enables one, and nothing new after the file changed.

import { expect, test } from 'bun:test'
import { files } from '../support/daemon.ts'
import { MINUTE, triggerHome, WATCHED } from '../support/triggers.ts'

const declaring = (minutes: number, version = '1.0.0') =>
  `${WATCHED.replace('1.0.0', version)}triggers:
  - { name: nightly, schedule: { cron: "*/${minutes} * * * *", tz: UTC }, inputs: { day: "{{ slot }}" } }
  - { name: opened, hook: { scheme: github } }
`

test('a declared trigger starts runs once it is enabled, and says where it stands', async () => {
  await using t = await triggerHome()
  t.write(declaring(5))
  await t.later(6 * MINUTE)
  expect(t.triggers.list({ limit: 10, offset: 0 }).total).toBe(0)
  const { team } = t
  const enabled = await t.triggers.enableDeclared({ team, name: 'nightly' }, 'local:ada')
  const source = { team: '@local/watched', version: '1.0.0', name: 'nightly' }
  expect(enabled).toMatchObject({
    name: 'nightly',
    state: 'active',
    source,
    inputs: { day: '{{ slot }}' },
    revision: 1,
  })
  await t.later(5 * MINUTE)
  expect(t.rows()).toEqual(['23T00:10 started'])
  const [run] = t.firings()
  expect(t.daemon.engine.record(run!.run_id!).inputs).toMatchObject({ day: '2026-11-23T00:10Z' })
})

test('another spec in the file is never taken silently', async () => {
  await using t = await triggerHome()
  const { team } = t
  const enable = () => t.triggers.enableDeclared({ team, name: 'nightly' }, 'local:ada')
  t.write(declaring(5))
  const { id } = await enable()
  t.write(declaring(10, '1.1.0'))
  await t.later(5 * MINUTE)
  const text = 'the spec of nightly changed in 1.1.0; enable it again'
  expect(t.firings()).toMatchObject([{ state: 'refused', reason: 'team', detail: text }])
  expect(t.triggers.get({ name: 'nightly' })).toMatchObject({ state: 'broken', problem: { text } })
  expect(await enable()).toMatchObject({ id, state: 'active', cron: '*/10 * * * *', revision: 2 })
  await t.later(5 * MINUTE)
  expect(t.rows().at(-1)).toBe('23T00:10 started')
  // What changes beside it is no matter of the trigger.
  t.write(declaring(10, '1.2.0'))
  await t.later(10 * MINUTE)
  expect(t.rows().at(-1)).toBe('23T00:20 started')
  t.write(WATCHED)
  await t.later(10 * MINUTE)
  expect(t.firings().at(-1)!.detail).toBe('the spec of nightly is gone in 1.0.0; enable it again')
  // It ends by itself when the file says the same again.
  t.write(declaring(10))
  await t.later(10 * MINUTE)
  expect(t.rows().at(-1)).toBe('23T00:40 started')
  expect(t.triggers.get({ name: 'nightly' }).state).toBe('active')
})

test('a file that changes is noticed without an occasion', async () => {
  await using t = await triggerHome()
  t.write(declaring(59))
  await t.triggers.enableDeclared({ team: t.team, name: 'nightly' }, 'local:ada')
  t.write(declaring(58, '1.1.0'))
  await t.later(MINUTE)
  expect(t.triggers.get({ name: 'nightly' }).state).toBe('broken')
  t.write(declaring(59))
  await t.later(MINUTE)
  expect(t.triggers.get({ name: 'nightly' }).state).toBe('active')
  expect(t.firings()).toEqual([])
})

test('a change that mends nothing leaves it broken, which is told once', async () => {
  await using t = await triggerHome()
  t.write(declaring(59))
  const { id: trigger_id } = await t.triggers.enableDeclared({ team: t.team, name: 'nightly' }, 'local:ada')
  t.write(declaring(58, '1.1.0'))
  await t.later(MINUTE)
  const update = (changes: object) => t.triggers.update({ trigger_id }, changes, undefined, 'local:ada')
  for (const changes of [{ name: 'weeknights' }, { keep: false }]) {
    expect(await update(changes)).toMatchObject({ state: 'broken', problem: { reason: 'team' } })
    await t.later(MINUTE)
  }
  t.removeTeam()
  await t.later(MINUTE)
  expect(await update({ name: 'nightly', keep: true })).toMatchObject({ problem: { reason: 'team' } })
  t.restoreTeam(declaring(58, '1.1.0'))
  await t.later(MINUTE)
  expect(t.triggers.get({ trigger_id })).toMatchObject({ state: 'active', problem: null })
  await update({ keep: false })
  await t.later(MINUTE)
  expect(await update({ keep: true })).toMatchObject({ state: 'active', problem: null })
  expect(t.said.filter(line => line.includes('a trigger is broken'))).toHaveLength(2)
})

test('`keep` goes on with the spec that was enabled', async () => {
  await using t = await triggerHome()
  t.write(declaring(5))
  await t.triggers.enableDeclared({ team: t.team, name: 'nightly' }, 'local:ada')
  await t.triggers.update({ name: 'nightly' }, { keep: true }, undefined, 'local:ada')
  t.write(declaring(10, '1.1.0'))
  await t.later(5 * MINUTE)
  expect(t.rows()).toEqual(['23T00:05 started'])
  expect(t.triggers.get({ name: 'nightly' })).toMatchObject({ cron: '*/5 * * * *', source: { version: '1.0.0' } })
})

test('its spec is changed in the file only', async () => {
  await using t = await triggerHome()
  t.write(declaring(5))
  await t.triggers.enableDeclared({ team: t.team, name: 'nightly' }, 'local:ada')
  await expect(t.triggers.update({ name: 'nightly' }, { cron: '0 6 * * *' }, undefined, 'local:ada')).rejects.toThrow(
    'nightly is defined in the team.yml of @local/watched: change it there, and enable it again',
  )
  t.triggers.disable({ name: 'nightly' }, 'local:ada')
  expect(await t.triggers.enableDeclared({ team: t.team, name: 'nightly' }, 'local:ada')).toMatchObject({
    ...{ state: 'active', revision: 3 },
  })
})

test('a trigger that is enabled by its name is what the file says now', async () => {
  await using t = await triggerHome()
  t.write(declaring(5))
  await t.triggers.enableDeclared({ team: t.team, name: 'nightly' }, 'local:ada')
  t.write(declaring(10, '1.1.0'))
  await t.later(5 * MINUTE)
  const broken = t.triggers.get({ name: 'nightly' })
  expect([broken.state, broken.next]).toEqual(['broken', []])
  expect(await t.triggers.enable({ name: 'nightly' }, 'local:ada')).toMatchObject({
    ...{ state: 'active', cron: '*/10 * * * *', source: { version: '1.1.0' } },
  })
})

test('another kind in the file, or another folder of the same name, takes no trigger over', async () => {
  await using t = await triggerHome()
  t.write(declaring(5))
  const SECRET = 'It is a secret of 24 chars'
  const added = await t.triggers.enableDeclared({ team: t.team, name: 'opened', secret: SECRET }, 'local:ada')
  t.write(declaring(5).replace('opened, hook: { scheme: github }', 'opened, schedule: { every: 90m }'))
  await expect(t.triggers.enable({ name: 'opened' }, 'local:ada')).rejects.toThrow('is a hook here and a schedule in')
  expect(t.triggers.get({ name: 'opened' })).toMatchObject({ kind: 'hook', scheme: 'github' })
  const other = files({ 'team.yml': declaring(5) })
  const taken = t.triggers.enableDeclared({ team: other, name: 'opened', secret: SECRET }, 'local:ada')
  await expect(taken).rejects.toThrow(`the trigger opened of ${t.team}`)
  expect(t.triggers.get({ name: 'opened' }).team).toBe(added.team)
})

test('two folders may declare triggers of one name: one of them gets another here', async () => {
  await using t = await triggerHome()
  t.write(declaring(5))
  const folder = files({ 'team.yml': declaring(10) })
  const enable = (team: string) => t.triggers.enableDeclared({ team, name: 'nightly' }, 'local:ada')
  const rename = (trigger_id: string, name: string) =>
    t.triggers.update({ trigger_id }, { name }, undefined, 'local:ada')
  const one = await enable(t.team)
  await expect(enable(folder)).rejects.toThrow(
    `the trigger nightly of ${t.team}: give that one another \`name\` with triggers/update first`,
  )
  await rename(one.id, 'five')
  const two = await enable(folder)
  expect([two.name, two.team]).toEqual(['nightly', folder])
  // Each is found by what declares it, whatever its name is here.
  expect((await enable(t.team)).id).toBe(one.id)
  expect((await t.triggers.enable({ name: 'five' }, 'local:ada')).id).toBe(one.id)
  expect((await enable(folder)).id).toBe(two.id)
  await expect(rename(two.id, 'five')).rejects.toThrow('has a trigger five already: choose another name')
  await expect(rename(two.id, 'last')).rejects.toThrow('`last` means the newest run')
})

test('the secrets of a declared hook are changed like those of any other', async () => {
  await using t = await triggerHome()
  t.write(declaring(5))
  const enable = (secret: string) => t.triggers.enableDeclared({ team: t.team, name: 'opened', secret }, 'local:ada')
  await enable('the first one of 24 chars and more')
  await expect(enable('the second one of 24 chars')).rejects.toThrow('has a secret already')
  const more = { add_secret: 'the second one of 24 chars' }
  const { secrets } = await t.triggers.update({ name: 'opened' }, more, undefined, 'local:ada')
  expect(secrets).toHaveLength(2)
  const less = { expire_secret: secrets![0]!.id }
  const left = (await t.triggers.update({ name: 'opened' }, less, undefined, 'local:ada')).secrets!
  expect(left.map(({ expires_at }) => expires_at === null)).toEqual([false, true])
})

test('what cannot be enabled says why', async () => {
  await using t = await triggerHome()
  t.write(declaring(5))
  const enable = (name: string, secret?: string) =>
    t.triggers.enableDeclared({ team: t.team, name, ...(secret !== undefined && { secret }) }, 'local:ada')
  await expect(enable('nigthly')).rejects.toThrow(
    '@local/watched has no trigger nigthly (did you mean `nightly`?): it declares nightly, opened',
  )
  await expect(enable('opened')).rejects.toThrow('secret: is required: the sender and cadre share it')
  expect(await enable('opened', 'It is a secret of 24 chars')).toMatchObject({ kind: 'hook', scheme: 'github' })
  await t.add({ name: 'nightly', cron: '0 6 * * *' })
  await expect(enable('nightly')).rejects.toThrow('the trigger nightly of')
})
