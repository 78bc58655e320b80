// Runs watched in windows of a real terminal: the tree stays within the window and is true, nothing scrolls away, and
// Ctrl-C asks before it cancels.

import { expect, test } from 'bun:test'
import { command, files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { hasTmux, type Size, Window } from '../support/tmux.ts'
import { SLEEPS } from './teams.ts'

/** 60 items of which three fail, and a gate beside them. */
const SIXTY = {
  'team.yml': `name: "@local/sixty"
version: 1.0.0
outputs: [{ name: failed, type: number, value: "{{ phases.each.data.failed }}" }]
phases:
  - name: list
    agent: exec
    commands: [{ name: c, run: 'seq 1 60 | paste -sd, | sed "s/.*/[&]/" > "$CADRE_RESULT"' }]
  - name: each
    type: map
    depends_on: [list]
    items: "{{ phases.list.data }}"
    key: "item-{{ item }}"
    team: ./item
    inputs: { n: "{{ item }}" }
    concurrency: 6
    on_item_failure: continue
  - name: ask
    type: gate
    depends_on: [each]
    commands: [{ name: look, run: "echo all looks well" }]
    review:
      prompt: Publish?
      reviewers: [any]
      inputs:
        - { name: space, type: string, required: true, choices: [DOCS, TEAM], description: Where to }
        - { name: quiet, type: boolean, default: false }
  - { name: after, depends_on: [ask], agent: exec, commands: [{ name: c, run: "true" }] }
`,
  'item/team.yml': `name: "@local/item"
version: 1.0.0
inputs: [{ name: n, type: number, required: true }]
phases:
  - { name: prepare, agent: exec, commands: [{ name: c, run: "sleep 0.05" }] }
  - name: work
    depends_on: [prepare]
    agent: exec
    commands: [{ name: c, env: { N: "{{ inputs.n }}" }, run: 'if [ $((N % 20)) = 7 ]; then echo "no space" >&2; exit 3; fi' }]
`,
}

const SIZES: readonly Size[] = [
  { columns: 80, rows: 24 },
  { columns: 40, rows: 20 },
  { columns: 200, rows: 60 },
]

for (const { columns, rows } of SIZES) {
  test.skipIf(!hasTmux)(
    `60 items with failures and a gate at ${columns}×${rows}`,
    async () => {
      const home = folder()
      await using window = await Window.open(['run', files(SIXTY)], { home, columns, rows })
      // The first failure is seen while others run.
      const early = await window.shows(/✗ work/)
      expect(early).toContain('command c exited with code 3: no')
      const last = await window.shows(/exit=3/)
      expect(last).toMatch(/each {2}60\/60 3 failed/)
      expect(last).toMatch(/✗ item-7 [\s\S]*✗ work [\s\S]*command c exited with code 3: no\s+space/)
      expect(last).toMatch(/\? ask {2}waits for a person/)
      expect(last).not.toMatch(/running/)
      expect(last).toMatch(/awaiting input {2}@local\/sixty/)
      expect(await window.scrolled()).toBeLessThan(30)
    },
    120_000,
  )
}

test.skipIf(!hasTmux)(
  'a window that changes its size in between keeps one picture',
  async () => {
    const home = folder()
    await using window = await Window.open(['run', files(SIXTY)], { home, columns: 100, rows: 40 })
    await window.shows(/each {2}\d+\/60/)
    for (const size of [
      { columns: 40, rows: 20 },
      { columns: 120, rows: 30 },
    ]) {
      await window.resize(size)
      await Bun.sleep(300)
    }
    const last = await window.shows(/exit=3/)
    expect(last.match(/@local\/sixty {2}/g)).toHaveLength(2)
    expect(last.match(/each {2}60\/60/g)).toHaveLength(1)
    expect(await window.scrolled()).toBeLessThan(30)
  },
  120_000,
)

test.skipIf(!hasTmux)(
  'decide asks for the decision and for each field',
  async () => {
    const home = folder()
    const path = files({ ...SIXTY, 'team.yml': SIXTY['team.yml'].replace('depends_on: [each]', 'depends_on: [list]') })
    expect((await command(['run', path], { home })).code).toBe(3)
    await using window = await Window.open(['decide', 'last'], { home, columns: 80, rows: 30 })
    const asked = await window.shows(/decision \(approve, reject\): ?$/m)
    for (const text of ['Publish?', '| all looks well', 'DOCS or TEAM, required']) expect(asked).toContain(text)
    await window.press('yes', 'Enter')
    await window.shows(/yes is not an answer: approve, reject/)
    await window.press('approve', 'Enter')
    await window.shows(/space \(DOCS, TEAM\) Where to: ?$/m)
    await window.press('Enter')
    await window.shows(/space is required: DOCS, TEAM/)
    await window.press('ELSE', 'Enter')
    await window.shows(/expected one of "DOCS", "TEAM"/)
    await window.press('DOCS', 'Enter')
    await window.shows(/quiet \(yes or no, default false\): ?$/m)
    await window.press('Enter')
    expect(await window.shows(/exit=0/)).toMatch(/approved ask[\s\S]*completed {2}@local\/sixty/)
  },
  120_000,
)

test.skipIf(!hasTmux)(
  'Ctrl-C once leaves a run of the daemon alone, twice cancels it',
  async () => {
    const daemon = await spawnDaemon()
    const { home } = daemon
    const path = files({ 'team.yml': SLEEPS })
    const state = async () => (await daemon.call('/v1/runs/list')).runs[0].state
    {
      await using window = await Window.open(['run', path], { home, columns: 80, rows: 24 })
      await window.shows(/nap/)
      await window.press('C-c')
      expect(await window.shows(/exit=130/)).toMatch(/the run goes on: bun (\S+\/)?daemon\.ts watch /)
      expect(await state()).toBe('running')
    }
    await using window = await Window.open(['watch', 'last'], { home, columns: 80, rows: 24 })
    await window.shows(/nap/)
    await window.press('C-c')
    await window.shows(/the run goes on without this command; Ctrl-C again cancels it/)
    await window.press('C-c')
    await window.shows(/exit=130/)
    expect(await state()).toBe('cancelled')
    await daemon.stop()
  },
  120_000,
)
