// What confirms the clock of a daemon's machine: the same time at a hub elsewhere that believes its own clock.

import { expect, test } from 'bun:test'
import { confirms } from '../../lib/daemon/link/hub-bulletin.ts'

const bulletin = { dispatch_public_key: '', dispatch_keys: [], acl_version: '1', teams_version: '1' }

test.each([
  ['a hub that believes its clock', 'https://hub.example', { clock_believed: true }, 60_000, true],
  ['one that is behind by as much', 'https://hub.example', { clock_believed: true }, -60_000, true],
  ['one that shows another time', 'https://hub.example', { clock_believed: true }, 60_001, false],
  ['one in a container beside it, with the same wrong clock', 'http://hub:7433', { clock_believed: false }, 0, false],
  ['an older one, which does not say it', 'https://hub.example', {}, 0, false],
  ['one of this machine', 'http://127.0.0.1:7433', { clock_believed: true }, 0, false],
])('%s', (_, url, said, ahead, expected) => {
  expect(confirms(url, { ...bulletin, ...said }, ahead)).toBe(expected)
})
