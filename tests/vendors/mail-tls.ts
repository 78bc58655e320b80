// Run by a test in a process of its own: sends one mail to a server whose certificate lies in the given folder, and
// prints what arrived as JSON.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import email from '../../agents/email.ts'
import { createContext } from '../../lib/agent/context.ts'
import { createRedactor } from '../../lib/redact.ts'
import { mailVendor, PASSWORD, USER } from './mail.ts'

const at = process.argv[2]!
const vendor = await mailVendor({
  disabledCommands: [],
  authOptional: false,
  cert: readFileSync(join(at, 'cert.pem')),
  key: readFileSync(join(at, 'key.pem')),
})
const context = createContext({
  settings: {
    smtp_host: 'localhost',
    smtp_port: vendor.port,
    username: USER,
    password: PASSWORD,
    channels: { ops: 'ops@example.org' },
  },
  network: { allow: [], literalOrigins: [] },
  redactor: createRedactor([]),
  signal: new AbortController().signal,
  log: line => console.error(line),
  stateDir: at,
  workspace: at,
  outside: false,
  key: 'key',
  attempt: 1,
  run: { id: '0190', name: null, team: '@local/team', url: null },
  phase: { name: 'phase' },
  effect: 'once',
})
await email.phase!.run({ message: 'm' }, context)
const { user, secure, to } = vendor.received[0]!
console.log(JSON.stringify({ user, secure, to }))
await vendor.close()
