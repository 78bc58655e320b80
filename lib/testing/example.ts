// What the author of an agent declares for the suite: how its vendor is opened, and one call of each action that succeeds.

import type { JsonObject } from '../json.ts'
import type { FakeVendor, Vendor } from './fake-vendor.ts'
import type { CallOptions } from './subject.ts'

/**
 * One call of an action that succeeds at the fake vendor.
 * @example const put: Example = { entry: { name: 'item', ref: '2', file: 'item.md' }, files: { 'item.md': 'second' } }
 */
export interface Example extends Pick<CallOptions, 'files' | 'event' | 'prepare'> {
  entry: JsonObject
  /**
   * `METHOD /path` of the request that does the work, and that fails on bad days. Default: each request of an action that
   * reads; the writing requests (POST, PUT, PATCH, DELETE) of one that writes.
   */
  request?: RegExp
  /** The permission that the hint of a 403 must name, in the vendor's words. */
  scope?: string
  /** What an error must say of the thing that failed, such as `item 2`; default the place, `[stock.put_item]`. */
  names?: string
  /** The agent passes on whatever comes with 200, so that nothing can be foreign to it. */
  anyReply?: boolean
  /** Credentials that stand in the entry or the files rather than in the settings. */
  secrets?: readonly string[]
}

/**
 * What `testAgent` needs to know.
 * @example const spec: AgentTest = { file, vendor: () => fakeVendor(routes), settings, examples }
 */
export interface AgentTest<V extends Vendor = FakeVendor> {
  /** The agent's file, as an absolute path. */
  file: string
  /**
   * Opens the vendor with what the examples need. It is called for each check, which closes it. The checks of requests,
   * such as refusals and redirects, are left out for a vendor that is not a `FakeVendor`.
   */
  vendor(): V | Promise<V>
  /** The agent's settings at this vendor, with credentials that the vendor takes. */
  settings(vendor: V): JsonObject
  /**
   * One call for everything that the agent can do. The keys are the names of its actions, or `source`, `target`, `phase`
   * and `notify` for what has no action.
   */
  examples: Record<string, Example | ((vendor: V) => Example)>
  /**
   * What else may happen to the vendor, by the code of the error that each call must then end with: for protocols whose
   * bad days the suite does not know.
   */
  badDays?: Record<string, (vendor: V) => unknown>
}
