// What a successful call returns: a line for people, and JSON that can be recorded.

import { expect } from 'bun:test'
import { MAX_DATA_BYTES } from '../agent/agent-context.ts'
import { notJson } from '../json.ts'
import { attempt, check, type Trial, timesSent } from './check.ts'
import { isFake, type Vendor } from './fake-vendor.ts'

export function results<V extends Vendor>(trial: Trial<V>): void {
  const { effect, open, call, subject, handler } = trial

  check('declares an effect that fits its direction', () => {
    const direction = subject.agent.actions?.[call]?.direction ?? call
    const fitting = { source: ['read', 'idempotent', 'once'], target: ['idempotent', 'once'] }[direction]
    expect(fitting ?? ['read', 'idempotent', 'once']).toContain(effect)
    if (handler.find && typeof handler.effect !== 'function') expect(effect, 'only `once` has a `find`').toBe('once')
  })

  check('gives a line for people and plain JSON', async () => {
    await using vendor = await open()
    const { result, error } = await attempt(trial, vendor)
    if (!result) throw error
    if (isFake(vendor)) expect(timesSent(trial, vendor), `requests that match ${trial.request}`).toBeGreaterThan(0)
    const { text, data, external } = result
    expect(text).toBeString()
    expect(text).toMatch(/\S/)
    expect(text).not.toMatch(/\bundefined\b|\[object \w+\]/)
    expect([notJson(data, 'data'), notJson(external, 'external')]).toEqual([null, null])
    expect(Buffer.byteLength(JSON.stringify(data ?? {}))).toBeLessThanOrEqual(MAX_DATA_BYTES)
    for (const value of Object.values(external ?? {})) expect(value).toMatch(/^(?!undefined$|null$)./)
  })
}
