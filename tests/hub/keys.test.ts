// Private dispatch keys at rest.

import { expect, test } from 'bun:test'
import { createSealer } from '../../lib/hub/keys.ts'

const PEM = '-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n'

test('sealed keys open under their own key only, and never twice alike', () => {
  const sealer = createSealer('one')
  const [first, second] = [sealer.seal(PEM), sealer.seal(PEM)]
  expect(first).not.toContain('PRIVATE')
  expect(first).not.toBe(second)
  expect(sealer.open(first)).toBe(PEM)
  expect(() => createSealer('two').open(first)).toThrow(/not the key/)
  expect(() => createSealer(undefined).open(first)).toThrow(/CADRE_HUB_KEY/)
  expect(() => sealer.open(`${first.slice(0, -6)}AAAA==`)).toThrow(/not the key/)
})

test('keys that were stored before there was a key still open', () => {
  expect(createSealer('one').open(createSealer(undefined).seal(PEM))).toBe(PEM)
})
