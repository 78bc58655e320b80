// A GitHub and a fresh clone of its repository for each test.

import { afterAll, afterEach, beforeAll, beforeEach } from 'bun:test'
import { folder } from '../support/folder.ts'
import { freshClone } from '../vendors/git-host.ts'
import { type FakeGitHub, fakeGitHub } from '../vendors/github.ts'

export let hub: FakeGitHub
export let workspace: string

/** Another folder in place of the clone. */
export function workIn(folder: string): void {
  workspace = folder
}

export const EVENT = {
  name: 'on_complete',
  team: '@local/x',
  run: { id: '1', name: null, state: 'completed', reason: null },
  message: 'done',
  outputs: null,
}

/** Keeps the developer's own configuration of git out. To be called by each file, to which the hooks then belong. */
export function inEmptyHome(): void {
  const home = process.env.HOME
  beforeAll(() => {
    process.env.HOME = folder()
  })
  afterAll(() => {
    process.env.HOME = home
  })
}

/** To be called by each file of tests: hooks belong to the file that registers them. */
export function cloneForEachTest(): void {
  inEmptyHome()
  beforeEach(() => {
    hub = fakeGitHub()
    workspace = freshClone(`${hub.url}/acme/app.git`)
  })
  afterEach(() => hub[Symbol.dispose]())
}
