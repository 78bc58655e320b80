// examples/ticket-digest from end to end, against vendors of our own and real git and mail servers: what each of them
// gets, and that a second run brings it up to date and makes nothing twice.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunRecord } from '../../lib/run/engine.ts'
import { command } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { hasBubblewrap } from '../support/sandbox.ts'
import { ACCOUNT } from '../vendors/atlassian.ts'
import { chatVendor } from '../vendors/chat.ts'
import { freshClone, git } from '../vendors/git-host.ts'
import { fakeGitHub, TOKEN } from '../vendors/github.ts'
import { addComment, addIssue, doc, fakeIssues } from '../vendors/issues.ts'
import { type MailVendor, mailVendor, PASSWORD, USER } from '../vendors/mail.ts'
import { fakeWiki } from '../vendors/wiki.ts'

const EXAMPLE = join(import.meta.dir, '../../examples/ticket-digest')
const PAGE = '131073'

const issues = fakeIssues()
const wiki = fakeWiki()
const hub = fakeGitHub()
const chat = chatVendor()
let mail: MailVendor
const home = folder()
const clone = freshClone(`${hub.url}/acme/app.git`)

beforeAll(async () => {
  mail = await mailVendor()
  const agents = {
    issues: { ...ACCOUNT, base_url: issues.url },
    wiki: { ...ACCOUNT, base_url: wiki.url },
    git: { provider: 'github', github: { token: TOKEN, base_url: hub.url } },
    chat: { channels: { team: chat.hook('team') } },
    email: {
      smtp_host: '127.0.0.1',
      smtp_port: mail.port,
      tls: false,
      username: USER,
      password: PASSWORD,
      channels: { team: 'team@example.org' },
    },
  }
  writeFileSync(
    join(home, 'settings.yml'),
    JSON.stringify({ agents, exec: { sandbox: hasBubblewrap ? 'bubblewrap' : 'none' } }),
    { mode: 0o600 },
  )
})
afterAll(async () => {
  for (const server of [issues, wiki, hub, chat]) server[Symbol.dispose]()
  await mail.close()
})

async function digest(): Promise<RunRecord> {
  const inputs = ['-i', 'project=WEB', '-i', `page=${PAGE}`]
  const args = ['run', EXAMPLE, '--workspace', clone, '--json', ...inputs]
  const { stdout, stderr, code } = await command(args, { home })
  expect([code, stderr + stdout]).toEqual([0, expect.not.stringContaining('canary')])
  return JSON.parse(stdout)
}

const pageOf = () => wiki.pages.get(PAGE)!

test('a project becomes a page, a pull request, a mail and a message', async () => {
  addIssue(issues, { summary: '"Quotes" & $(whoami) `id`', description: null })
  addComment(issues.issues.get('WEB-1')!, doc('Mine too.'))
  const { run_id, outputs } = await digest()
  const url = `${wiki.url}/wiki/spaces/DOCS/pages/${PAGE}`
  expect(outputs).toEqual({
    tickets: 2,
    digest: 'files/digest/digest.md',
    page: url,
    pull_request: 'https://github.test/acme/app/pull/1',
  })
  const text = readFileSync(join(home, 'runs', run_id, 'files/digest/digest.md'), 'utf8')
  expect(text).toBe(`2 tickets of WEB are open.

## [WEB-1](${issues.url}/browse/WEB-1)

**Login fails**, To Do, 1 comments

> On Mondays.

## [WEB-2](${issues.url}/browse/WEB-2)

**"Quotes" & $(whoami) \`id\`**, To Do, 0 comments
`)
  expect(pageOf()).toMatchObject({ title: 'Open tickets', version: { number: 2 } })
  expect(pageOf().body.storage.value).toContain('<strong>Login fails</strong>')
  expect(hub.pullRequests).toMatchObject([{ title: 'Open tickets of WEB', body: `Also at ${url}` }])
  expect(git(hub.origin, 'show', 'ticket-digest-WEB:docs/tickets.md')).toBe(text.trim())
  expect(mail.received).toMatchObject([{ to: ['team@example.org'], mail: { subject: 'Open tickets: 2 of WEB' } }])
  expect(mail.received[0]!.mail.attachments).toMatchObject([{ filename: 'digest.md' }])
  expect(chat.posts.map(({ payload }) => payload.text)).toEqual([
    expect.stringContaining(`2 open tickets of WEB: ${url}`),
  ])
})

test('again: a new version of the page, new commits in the pull request', async () => {
  addIssue(issues, { summary: 'A third', description: null })
  const { outputs } = await digest()
  expect(outputs).toMatchObject({ tickets: 3, pull_request: 'https://github.test/acme/app/pull/1' })
  expect(pageOf().version.number).toBe(3)
  expect(hub.pullRequests).toHaveLength(1)
  expect(git(hub.origin, 'rev-list', '--count', 'ticket-digest-WEB')).toBe('3')
  expect([mail.received.length, chat.posts.length]).toEqual([2, 2])
})

test('when the tracker refuses, nothing is written and the channel hears of it', async () => {
  const written = [pageOf().version.number, mail.received.length]
  issues.fail(/search/, () => Response.json({ errorMessages: ['The project does not exist'] }, { status: 400 }))
  const args = ['run', EXAMPLE, '--workspace', clone, '-i', 'project=NONE', '-i', `page=${PAGE}`]
  expect((await command(args, { home })).code).toBe(1)
  expect([pageOf().version.number, mail.received.length]).toEqual(written)
  expect(chat.posts.at(-1)!.payload.text).toContain('failed')
})
