// What `validate` and `plan` say of a `retry` that repeats nothing, because each write of its phase may happen only once.

import { expect, test } from 'bun:test'
import { command, files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const phase = (name: string, more: string, entry: string) =>
  `  - { name: ${name}, agent: http, ${more}, target_entries: [{ name: r, url: "https://api.example.com/records", body: x${entry} }] }\n`
const TEAM = `name: "@local/post"
version: 1.0.0
phases:
${phase('post', 'retry: { attempts: 3, backoff: 1s }', '')}\
${phase('alone', 'timeout: 10s', '')}\
${phase('again', 'retry: { attempts: 3, backoff: 1s }', ', effect: idempotent')}\
${phase('put', 'retry: { attempts: 3, backoff: 1s }', ', method: PUT')}\
  - name: both
    agent: http
    retry: { attempts: 3, backoff: 1s }
    target_entries:
      - { name: one, url: "https://api.example.com/records", body: x }
      - { name: two, url: "https://api.example.com/records", body: x, method: PUT }
  - name: found
    agent: issues
    action: create_issue
    retry: { attempts: 3, backoff: 1s }
    target_entries: [{ name: i, file: issues.json }]
`

test('validate and plan name the phase whose `retry` repeats nothing', async () => {
  const home = folder()
  const path = files({ 'team.yml': TEAM })
  const valid = await command(['validate', path], { home })
  expect(valid.stdout).toBe(
    `${path} is valid\nnote: team.yml:4:5: phase post writes \`once\`, so \`retry\` repeats nothing after a lost reply, a 408 or a 5xx, and a person is asked (an entry of http that may be repeated says \`effect: idempotent\`)\n`,
  )
  const plan = await command(['plan', path], { home })
  const withNote = plan.stdout.split('\n').filter(line => line.includes('but cadre asks a person after a lost reply'))
  expect(withNote.map(line => line.trim().split(' ')[0])).toEqual(['post'])
})
