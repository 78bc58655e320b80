// A site of Jira for each test, and the agent called against it.

import { afterEach, beforeEach } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import issues from '../../agents/issues.ts'
import type { AgentContext } from '../../lib/agent/agent-context.ts'
import type { Effect } from '../../lib/agent/core/effect.ts'
import type { JsonObject } from '../../lib/json.ts'
import { phaseFolder, type TestContext, testContext } from '../support/context.ts'
import { outcomeOf } from '../support/outcome.ts'
import { truthful } from '../support/truthful.ts'
import { ACCOUNT } from '../vendors/atlassian.ts'
import { type FakeIssues, fakeIssues } from '../vendors/issues.ts'

const actions = truthful(issues).actions!
export const settings = (url: string) => ({ ...ACCOUNT, base_url: url })
/** A run that began a moment ago, as UUIDv7. */
export const RUN = { id: Bun.randomUUIDv7(), name: null, team: '@local/t', created_at: Date.now(), url: null }

export let site: FakeIssues
/** To be called by each file of tests: hooks belong to the file that registers them. */
export function siteForEachTest(): void {
  beforeEach(() => {
    site = fakeIssues()
  })
  afterEach(() => site[Symbol.dispose]())
}

export const begin = (effect: Effect = 'read', options: Parameters<typeof testContext>[0] = {}) =>
  testContext({
    agent: 'issues',
    settings: settings(site.url),
    network: { allow: [], literalOrigins: [] },
    effect,
    run: RUN,
    ...options,
  })
export const run = (action: string, entry: object, at: TestContext) =>
  actions[action]!.run({ name: 'x.json', ...entry }, at.context as AgentContext<never>)
export const find = (action: string, entry: object, at: TestContext) =>
  actions[action]!.find!({ name: 'x.json', ...entry }, at.context as AgentContext<never>)
export const written = (at: TestContext) => JSON.parse(readFileSync(join(phaseFolder(at), 'x.json'), 'utf8'))
export const give = (at: TestContext, file: string, content: string | object) =>
  writeFileSync(join(at.workspace, file), typeof content === 'string' ? content : JSON.stringify(content))
export const web = (key: string) => site.issues.get(key)!
export const writes = () => site.seen.filter(({ method, path }) => method !== 'GET' && !path.endsWith('/jql'))
export const phase = (name: string, action: string, entry: JsonObject, files: Record<string, string>) =>
  outcomeOf({
    agent: issues,
    name: 'issues',
    settings: settings(site.url),
    files,
    phase: { action, retry: { attempts: 3, backoff: '1ms' }, target_entries: [{ name, ...entry }] },
  })
