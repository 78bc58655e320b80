// The run of which the tests of messages speak.

import type { RunIdentity } from '../../lib/agent/agent-context.ts'

export const NIGHTLY: RunIdentity = {
  id: '0190',
  name: 'Nightly',
  team: '@local/digest',
  created_at: 0,
  url: 'http://127.0.0.1:7401/#/runs/0190',
}
