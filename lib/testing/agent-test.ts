// The test suite that every agent must pass. The author gives the agent, a fake vendor and one successful call of each
// action. The suite does to them what teams, vendors and networks do in practice. Each check needs only the example, so
// an agent's own test covers only what is special about its vendor.

import { afterAll, describe, expect } from 'bun:test'
import type { JsonObject } from '../json.ts'
import { badDays, ownBadDays } from './bad-days.ts'
import type { AgentTest } from './example.ts'
import type { FakeVendor, Vendor } from './fake-vendor.ts'
import { finds, lateWrites, onceRequests } from './once-writes.ts'
import { declaredSecrets, secrecy, secrecyOfRequests } from './secrecy.ts'
import { results, schemas, soundness } from './soundness.ts'
import { type CallOptions, type CallResult, Subject } from './subject.ts'
import { check, type Trial, trialOf } from './trial.ts'

/**
 * The agent, for its author's own tests.
 * @example const { data } = await stock.call(vendor, 'get_item', { name: 'item.json', ref: '1' })
 */
export interface TestedAgent<V extends Vendor = FakeVendor> {
  /** Calls an action, or `source`, `target`, `phase`, `notify`. Throws what the agent throws. */
  call(vendor: V, call: string, entry: JsonObject, options?: CallOptions): Promise<CallResult>
  /** Asks whose the credential is, with other settings than those of the test if given. */
  doctor(vendor: V, settings?: JsonObject): ReturnType<Subject<V>['doctor']>
  /** What the daemon says is wrong with these settings, one text for each problem. */
  problems(settings: JsonObject): Promise<string[]>
}

/**
 * Declares the tests that every agent passes, in the file that calls it, and gives the agent for further ones.
 * @example
 * const stock = await testAgent({
 *   file: join(import.meta.dir, '../agents/stock.ts'),
 *   vendor: () => fakeVendor({ 'GET /items/:id': () => ({ text: 'first' }) }, { allows }),
 *   settings: ({ url }) => ({ base_url: url, api_token: 'token-of-the-test' }),
 *   examples: { get_item: { entry: { name: 'item.json', ref: '1' }, names: 'item 1' } },
 * })
 */
export async function testAgent<V extends Vendor>(test: AgentTest<V>): Promise<TestedAgent<V>> {
  const subject = await Subject.load(test.file, test.settings)
  afterAll(() => subject.removeFolders())
  const calls = subject.calls().filter(call => call in test.examples)
  const trials = await Promise.all(calls.map(call => trialOf(subject, call, test)))

  describe(`${subject.name}, as every agent`, () => {
    check('has an example of each call', () => {
      expect(Object.keys(test.examples).sort()).toEqual(subject.calls().sort())
    })
    soundness(subject, test.vendor)
    for (const trial of trials) {
      describe(trial.call, () => {
        schemas(trial)
        results(trial)
        secrecy(trial)
        if (trial.effect === 'once') finds(trial)
        if (test.badDays) ownBadDays(trial, test.badDays)
        if (!overHttp(trial)) return
        badDays(trial)
        secrecyOfRequests(trial)
        declaredSecrets(trial)
        if (trial.effect !== 'once') return
        onceRequests(trial)
        lateWrites(trial)
      })
    }
  })
  return {
    call: (vendor, call, entry, options) => subject.call(vendor, call, entry, options),
    doctor: (vendor, settings) => subject.doctor(vendor, settings),
    problems: async settings => (await subject.settingProblems(settings)).map(({ message }) => message),
  }
}

function overHttp<V extends Vendor>(trial: Trial<V>): trial is Trial<V & FakeVendor> {
  return trial.overHttp
}
