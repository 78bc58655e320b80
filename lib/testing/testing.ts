// The module `cadre/testing`: what the test of an agent needs, whatever folder the agent lies in.

export { type TestedAgent, testAgent } from './agent-test.ts'
export { type DrivenClock, drivenClock } from './driven-clock.ts'
export type { AgentTest, Example } from './example.ts'
export { type FakeVendor, fakeVendor, type Vendor, type VendorRequest } from './fake-vendor.ts'
export type { CallOptions, CallResult } from './subject.ts'
