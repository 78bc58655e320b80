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

/** To be called by each file of tests: hooks belong to the file that registers them. */
export function cloneForEachTest(): void {
  // Nothing of the developer's own configuration of git.
  const home = process.env.HOME
  beforeAll(() => {
    process.env.HOME = folder()
  })
  afterAll(() => {
    process.env.HOME = home
  })
  beforeEach(() => {
    hub = fakeGitHub()
    workspace = freshClone(`${hub.url}/acme/app.git`)
  })
  afterEach(() => hub[Symbol.dispose]())
}
