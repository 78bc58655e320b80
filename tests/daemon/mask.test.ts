// What agents concealed: every masker of the daemon knows it, those that are there and those that are made later.

import { describe, expect, test } from 'bun:test'
import { Mask } from '../../lib/daemon/mask.ts'
import { createLog } from '../../lib/log.ts'

const open = () => new Mask(() => [{ name: 'agents.wiki.api_token', value: 'canary-setting' }], createLog())

describe('a concealed value', () => {
  test('is masked in every tree, beside settings and secret inputs', () => {
    const mask = open()
    const before = mask.redactor(['canary-input'])
    mask.conceal('canary-token')
    for (const redactor of [before, mask.redactor(), mask.redactor(['canary-input'])]) {
      expect(redactor.json({ said: ['canary-setting canary-token'] })).toEqual({ said: ['*** ***'] })
    }
    expect(before.text('canary-input')).toBe('***')
  })

  test('outlasts a change of the settings', () => {
    const mask = open()
    mask.conceal('canary-token')
    mask.learn()
    expect(mask.redactor().text('canary-token')).toBe('***')
  })

  test('is remembered while it is used, among many others that are forgotten', () => {
    const mask = open()
    for (let n = 1_000; n < 2_000; n++) {
      mask.conceal('canary-key')
      mask.conceal(`canary-token-${n}`)
      expect(mask.redactor().text(`canary-key canary-token-${n} canary-setting`)).toBe('*** *** ***')
    }
    expect(mask.redactor().text('canary-token-1000')).toBe('canary-token-1000')
    expect(mask.redactor().text('canary-token-1900')).toBe('***')
  })
})
