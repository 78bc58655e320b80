// Watches: each file that comes or changes in a folder starts one run, once it rests.

import { expect, test } from 'bun:test'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { CadreError } from '../../lib/error.ts'
import { until } from '../support/bounded.ts'
import { folder } from '../support/folder.ts'
import { triggerHome } from '../support/triggers.ts'
import { looks, TEAM, told, watchHome } from '../support/watch-home.ts'

const ADA = 'local:ada'
const IN = { name: 'in' }
const problemsOf = (work: Promise<unknown>) =>
  work.then(
    () => [],
    ({ details }: CadreError) => (details ?? []).map(({ path }) => path),
  )

test('a file that comes starts one run, which knows it', async () => {
  const { t, at, put } = await watchHome()
  await using _ = t
  put('a.txt', 'hello')
  await looks(t)
  const [firing] = t.firings('in')
  expect(firing).toMatchObject({ state: 'started', reason: null, count: 1 })
  const path = join(at, 'a.txt')
  expect(firing!.occasion).toMatch(new RegExp(`^${path}@5-[0-9]+-[0-9]+$`))
  await t.ended()
  const record = t.daemon.engine.record(firing!.run_id!)
  expect(record.inputs).toMatchObject({ file: path })
  const file = { path, name: 'a.txt', bytes: 5, mtime: expect.any(Number) }
  const { id } = t.triggers.get(IN)
  expect(record.started_by).toEqual({ kind: 'watch', trigger: id, ...IN, firing: firing!.id, files: [file] } as never)
  await looks(t)
  expect(told(t)).toEqual(['a.txt started'])
})

test('a file counts once it rests, and a half-written one does not', async () => {
  const { t, at, put } = await watchHome({ settle: '400ms' })
  await using _ = t
  put('slow.txt', 'first')
  for (let n = 0; n < 8; n++) {
    await looks(t, 2)
    appendFileSync(join(at, 'slow.txt'), ' more')
  }
  expect(told(t)).toEqual([])
  await looks(t, 12)
  expect(t.firings('in')).toMatchObject([{ state: 'started', files: [{ bytes: 45 }] }])
})

test('what editors do is one change, and what went and came back is none', async () => {
  const { t, at, put } = await watchHome()
  await using _ = t
  put('a.txt')
  await looks(t)
  put('.a.txt.swp')
  put('a.txt~', 'the one before')
  put('4913.tmp', 'changed')
  renameSync(join(at, '4913.tmp'), join(at, 'a.txt'))
  await looks(t)
  expect(told(t)).toEqual(['a.txt started', 'a.txt started'])
  // Moved away and back, as by a network folder that was away.
  const away = folder()
  renameSync(join(at, 'a.txt'), join(away, 'a.txt'))
  await looks(t)
  renameSync(join(away, 'a.txt'), join(at, 'a.txt'))
  await looks(t)
  expect(t.firings('in')).toHaveLength(2)
  rmSync(join(at, 'a.txt'))
  await looks(t)
  put('a.txt', 'another')
  await looks(t)
  expect(t.firings('in')).toHaveLength(3)
})

test('what was there at adding is seen, or counts with `initial`', async () => {
  const at = folder()
  writeFileSync(join(at, 'old.txt'), 'old')
  const { t, add, put } = await watchHome({}, at)
  await using _ = t
  await add({ name: 'all', initial: true })
  put('new.txt')
  await looks(t)
  expect([told(t), told(t, 'all').sort()]).toEqual([['new.txt started'], ['new.txt started', 'old.txt started']])
})

test('after a restart the first scans find what came, changed or went, each once', async () => {
  const { t, at, put } = await watchHome({ on: ['added', 'changed', 'removed'] })
  for (const name of ['stays', 'changes', 'goes']) put(name)
  await looks(t)
  await t.ended()
  await t.close()
  put('changes', 'changed')
  put('comes')
  rmSync(join(at, 'goes'))
  await using again = await triggerHome(t.home)
  await looks(again)
  await looks(again)
  expect(told(again).slice(3).sort()).toEqual(['changes started', 'comes started', 'goes started'])
  expect(again.firings('in').find(({ occasion }) => occasion.includes('@removed-'))?.files).toMatchObject([
    { name: 'goes', bytes: 4 },
  ])
})

test('only what it names counts, however deep, and by no link', async () => {
  const outside = folder()
  writeFileSync(join(outside, 'secret.pdf'), 'x')
  const { t, at, add, put } = await watchHome({ match: ['*.pdf', 'deep/*.txt'], ignore: ['no-*'], depth: 2 })
  await using _ = t
  await add({ name: 'parts', match: ['*.part', '.hidden'] })
  mkdirSync(join(at, 'deep/deeper'), { recursive: true })
  mkdirSync(join(at, '.git'))
  mkdirSync(join(at, 'no-folder'))
  symlinkSync(outside, join(at, 'link'))
  symlinkSync(join(outside, 'secret.pdf'), join(at, 'link.pdf'))
  const names = ['a.pdf', 'a.PDF', 'no-a.pdf', 'a.txt', '.b.pdf', 'c.part', '.hidden', 'd.pdf.part']
  for (const name of [...names, 'deep/e.pdf', 'deep/e.txt', 'deep/deeper/f.pdf', '.git/g.pdf', 'no-folder/h.pdf'])
    put(name)
  await looks(t)
  expect(told(t).sort()).toEqual(['a.pdf started', 'e.pdf started', 'e.txt started'])
  expect(told(t, 'parts').sort()).toEqual(['.hidden started', 'c.part started', 'd.pdf.part started'])
})

test('its fields are checked, and the folder is there', async () => {
  const { t, add } = await watchHome()
  await using _ = t
  const bad = (more: object) => problemsOf(add({ name: 'bad', ...more }))
  expect(await bad({ folder: undefined })).toEqual(['/folder'])
  expect(await bad({ folder: 'in', match: ['../x', '!y'], settle: '2', depth: 40 })).toEqual([
    ...['/folder', '/match/0', '/match/1', '/depth', '/settle'],
  ])
  expect(await bad({ folder: join(folder(), 'none') })).toEqual(['/folder'])
  expect(await bad({ on: ['completed'], batch: '2h' })).toEqual(['/on', '/batch'])
  expect(await bad({ claim: true, on: ['removed'] })).toEqual(['/on'])
  expect(await bad({ cron: '@daily' })).toEqual(['/cron'])
  expect(
    await bad({
      kind: 'chain',
      inputs: {},
      folder: undefined,
      settle: undefined,
      poll: undefined,
      after: 'a',
      on: ['added'],
    }),
  ).toEqual(['/on'])
})

test('files of one batch start one run', async () => {
  const { t, put } = await watchHome({ batch: '300ms' })
  await using _ = t
  put('a')
  await looks(t, 3)
  put('b')
  await looks(t, 8)
  expect(told(t)).toEqual(['a+b started'])
  const [firing] = t.firings('in')
  expect(firing).toMatchObject({ count: 2, occasion: expect.stringMatching(/^files:[0-9a-f]{64}$/) })
})

test('with its content as identity, a file that is written again unchanged is none', async () => {
  const { t, at, put } = await watchHome({ identity: 'sha256' })
  await using _ = t
  put('a', 'one')
  await looks(t)
  utimesSync(join(at, 'a'), 1, 1)
  await looks(t)
  put('a', 'two')
  await looks(t)
  put('a', 'one')
  await looks(t)
  const [first, second, third] = t.firings('in')
  expect(t.firings('in')).toHaveLength(3)
  expect(first!.files![0]!.sha256).toBe(new Bun.CryptoHasher('sha256').update('one').digest('hex'))
  expect(second!.occasion).not.toBe(first!.occasion)
  expect(third!.occasion).toBe(`${first!.occasion}~2`)
})

test('a pause records files each, and a resume what came while nothing looked', async () => {
  const { t, put } = await watchHome()
  await using _ = t
  t.triggers.pause(IN, 'tidying', ADA)
  put('a')
  put('b')
  await looks(t)
  put('c')
  await t.triggers.resume(IN, 'none', ADA)
  put('d')
  await looks(t)
  expect(told(t).sort()).toEqual(['a skipped paused', 'b skipped paused', 'c skipped paused', 'd started'])
  const b = t.firings('in').find(({ files }) => files![0]!.name === 'b')!
  expect(b.detail).toBe('paused by local:ada: tidying')
  const again = await t.triggers.refire(b.id, { again: false, by: ADA })
  expect(again).toMatchObject({ state: 'started', occasion: `${b.occasion}#2`, files: b.files })
})

test('what came while it was disabled or said something else is seen', async () => {
  const { t, put } = await watchHome({ match: ['*.pdf'] })
  await using _ = t
  t.triggers.disable(IN, ADA)
  put('a.pdf')
  put('a.txt')
  await looks(t)
  await t.triggers.enable(IN, ADA)
  await looks(t)
  await t.triggers.update(IN, { match: ['*.txt'] }, undefined, ADA)
  put('b.txt')
  await looks(t)
  await t.triggers.update(IN, { settle: '10ms' }, undefined, ADA)
  await looks(t)
  expect(told(t)).toEqual(['b.txt started'])
})

test('a folder that is gone or too full breaks it, and its return mends it', async () => {
  const { t, at, put } = await watchHome()
  await using _ = t
  rmSync(at, { recursive: true })
  await looks(t)
  expect(t.triggers.get(IN)).toMatchObject({ state: 'broken', problem: { reason: 'internal' } })
  expect(t.triggers.get(IN).problem!.text).toContain('no such folder')
  mkdirSync(at)
  put('a')
  await looks(t, 6)
  expect(t.triggers.get(IN).state).toBe('active')
  expect(told(t)).toEqual(['a started'])
})

test('a team that feeds itself is stopped at the eleventh report of a file', async () => {
  const { t, put } = await watchHome({ settle: '0s' })
  await using _ = t
  for (let n = 0; n < 13; n++) {
    put('log.txt', 'x'.repeat(n + 1))
    await looks(t, 2)
  }
  const states = told(t).map(line => line.split(' ').slice(1).join(' '))
  expect(states).toEqual([...Array(10).fill('started'), ...Array(3).fill('refused internal')])
  expect(t.triggers.get(IN).problem!.text).toContain('log.txt was reported more than 10 times')
  t.clock.now += 3_700_000
  await looks(t)
  put('log.txt', 'after an hour')
  await looks(t)
  expect(t.triggers.get(IN).state).toBe('active')
  expect(told(t).at(-1)).toBe('log.txt started')
})

test('a preview names what it would report now', async () => {
  const { t, at, put } = await watchHome()
  await using _ = t
  put('a')
  const file = { path: join(at, 'a'), name: 'a', bytes: 1, mtime: expect.any(Number), what: 'added' }
  const found = await t.triggers.previewFor({ name: 'in' })
  expect(found).toMatchObject({ slots: [], files: [file], total: 1 })
  await looks(t)
  expect(await t.triggers.previewFor({ name: 'in' })).toMatchObject({ files: [], total: 0 })
  expect(await t.triggers.previewFor({ folder: at, limit: 5 })).toMatchObject({ files: [file], total: 1 })
})

test('by hand it has the files of the newest occasion', async () => {
  const { t, put } = await watchHome({ inputs: { file: "{{ files.size() > 0 ? files[0].name : 'none' }}" } })
  await using _ = t
  const now = async () => {
    const { run_id } = await t.triggers.runNow(IN, { force: false, by: ADA })
    return t.daemon.engine.record(run_id!).inputs
  }
  expect(await now()).toMatchObject({ file: 'none' })
  put('a')
  await looks(t)
  expect(await now()).toMatchObject({ file: 'a' })
})

test('files beyond the limit break it', async () => {
  const at = folder()
  for (let n = 0; n < 4; n++) writeFileSync(join(at, `f${n}`), '')
  const { scan } = await import('../../lib/triggers/watch/scan.ts')
  const { checkWatch } = await import('../../lib/triggers/watch/spec.ts')
  const { spec } = checkWatch({ folder: at })
  expect((await scan(spec!, { most: 4 })).files.size).toBe(4)
  expect(scan(spec!, { most: 3 })).rejects.toThrow('has more than 3 files that match')
  expect(readdirSync(at)).toHaveLength(4)
  expect(existsSync(join(at, '.cadre-claimed'))).toBe(false)
})

test('a watch that a team declares is enabled by its name', async () => {
  const { t, at, put } = await watchHome()
  await using _ = t
  const declared = `triggers: [{ name: papers, watch: { folder: ${at}, settle: 10ms }, inputs: { file: "{{ files[0].name }}" } }]`
  t.write(TEAM.replace('phases:', `${declared}\nphases:`))
  put('before')
  await t.triggers.enableDeclared({ team: t.team, name: 'papers' }, ADA)
  put('after')
  await looks(t)
  expect(told(t, 'papers')).toEqual(['after started'])
})

test('an event brings a scan forward, also in a folder that is new', async () => {
  const { t, at, put } = await watchHome({ poll: '24h', depth: 2 })
  await using _ = t
  let woken = 0
  const end = t.watches.listen(() => woken++)
  await looks(t)
  mkdirSync(join(at, 'new'))
  await until(() => woken > 0, 'the folder is heard of')
  await looks(t)
  put('new/a')
  await until(async () => {
    await looks(t, 1)
    return told(t).length > 0
  }, 'the file is heard of')
  expect(told(t)).toEqual(['a started'])
  end()
  put('b')
  await looks(t)
  expect(told(t)).toHaveLength(1)
})
