import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import gitAgent from '../../agents/git.ts'
import type { AgentContext } from '../../lib/agent/agent-context.ts'
import { refusal } from '../../lib/testing/fake-vendor.ts'
import { testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { outcomeOf } from '../support/outcome.ts'
import { truthful } from '../support/truthful.ts'
import { ACCOUNT, addPull, type FakeBitbucket, fakeBitbucket } from '../vendors/bitbucket.ts'
import { forkOf, freshClone, git } from '../vendors/git-host.ts'
import { fakeGitHub, TOKEN } from '../vendors/github.ts'
import { cloneForEachTest, EVENT, hub, workIn, workspace } from './git-clone.ts'

const create = truthful(gitAgent).actions!.create_pr!

cloneForEachTest()

const begin = (settings: object = {}, options: Parameters<typeof testContext>[0] = {}) =>
  testContext({
    agent: 'git',
    settings: { provider: 'github', github: { token: TOKEN, base_url: hub.url, ...settings } },
    network: { allow: [], literalOrigins: [] },
    effect: 'once',
    workspace,
    ...options,
  })
type Begun = ReturnType<typeof begin>
const run = (entry: object = {}, at: Begun = begin()) => create.run(entry, at.context as AgentContext<never>)
const find = (entry: object = {}, at: Begun = begin()) => create.find!(entry, at.context as AgentContext<never>)
const edit = (name = 'new.md', text = 'new\n', at = workspace) => writeFileSync(join(at, name), text)
const outside = (...args: string[]) => git(hub.origin, ...args)

describe('a pull request on GitHub', () => {
  test('holds what changed, on a branch of its own', async () => {
    edit('new "1".md')
    edit('readme.md', 'second\n')
    const { data, external, text } = await run()
    const commit = git(workspace, 'rev-parse', 'HEAD')
    const url = 'https://github.test/acme/app/pull/1'
    expect(data).toEqual({ number: 1, url, branch: 'cadre/phase-00000000', commit })
    expect([external, text]).toEqual([{ id: '1', url }, `pull request 1 opened: ${url}`])
    expect(outside('rev-parse', 'cadre/phase-00000000')).toBe(commit)
    expect(outside('show', '--format=%an <%ae>', '--name-only', commit).split('\n')).toEqual([
      'cadre <cadre@localhost>',
      '',
      '"new \\"1\\".md"',
      'readme.md',
    ])
    expect(hub.pullRequests[0]).toMatchObject({
      title: 'Changes of run 01900000-0000-7000-8000-000000000000',
      body: 'Opened by run 01900000-0000-7000-8000-000000000000, phase phase.',
      draft: false,
      base: { ref: 'main' },
    })
  })

  test('takes its words, branch, reviewers and labels from the phase', async () => {
    edit()
    await run({
      title: 'T 🎉',
      body: '--body',
      commit_message: '-m\n\nmore',
      branch: 'fix/a',
      draft: true,
      reviewers: ['ann', 'acme/core'],
      labels: ['bug'],
    })
    expect(hub.pullRequests[0]).toMatchObject({
      title: 'T 🎉',
      body: '--body',
      draft: true,
      head: { ref: 'fix/a' },
      requested_reviewers: [{ login: 'ann' }],
      requested_teams: [{ slug: 'core' }],
      labels: ['bug'],
    })
    expect(outside('log', '-1', '--format=%B', 'fix/a')).toBe('-m\n\nmore')
  })

  test('that is open for the branch gets the new commits, and nothing else of it changes', async () => {
    edit()
    await run({ title: 'First', reviewers: ['ann'] })
    edit('two.md')
    const { data, text } = await run({ title: 'Second', reviewers: ['ann', 'bob'] })
    expect(data).toMatchObject({ number: 1, commit: git(workspace, 'rev-parse', 'HEAD') })
    expect(text).toContain('updated')
    expect(hub.pullRequests).toHaveLength(1)
    expect(hub.pullRequests[0]).toMatchObject({
      title: 'First',
      requested_reviewers: [{ login: 'ann' }, { login: 'bob' }],
    })
    expect(outside('rev-list', '--count', 'cadre/phase-00000000')).toBe('3')
  })

  test('is not opened when nothing changed and nothing is ahead', async () => {
    const commit = git(workspace, 'rev-parse', 'HEAD')
    expect((await run()).data).toEqual({ number: null, url: null, branch: 'cadre/phase-00000000', commit })
    expect(git(workspace, 'branch', '--show-current')).toBe('main')
    expect(hub.seen).toEqual([])
  })

  test('holds commits that were made before, from the branch that is checked out', async () => {
    git(workspace, 'switch', '--quiet', '-c', 'feature')
    edit()
    git(workspace, 'add', '.')
    git(workspace, 'commit', '--quiet', '-m', 'By hand')
    expect((await run()).data).toMatchObject({ number: 1, branch: 'feature' })
    expect(hub.pullRequests[0]!.title).toBe('By hand')
  })

  test('leaves alone what lies beside the folder, staged or not', async () => {
    mkdirSync(join(workspace, 'docs'))
    edit('docs/a.md')
    edit('beside.md')
    edit('staged.md')
    git(workspace, 'add', 'staged.md')
    await run({ project_dir: 'docs' })
    expect(outside('show', '--format=', '--name-only', 'cadre/phase-00000000')).toBe('docs/a.md')
    expect(git(workspace, 'status', '--porcelain')).toBe('A  staged.md\n?? beside.md')
  })

  test('removes what was removed', async () => {
    git(workspace, 'rm', '--quiet', 'readme.md')
    await run()
    expect(outside('ls-tree', '--name-only', 'cadre/phase-00000000')).toBe('')
  })

  test('goes on with a branch that only the remote has', async () => {
    edit()
    await run({ branch: 'daily' })
    workIn(freshClone(`${hub.url}/acme/app.git`))
    edit('tomorrow.md')
    expect((await run({ branch: 'daily' })).data).toMatchObject({ number: 1 })
    expect(outside('ls-tree', '--name-only', 'daily').split('\n')).toEqual(['new.md', 'readme.md', 'tomorrow.md'])
  })

  test('never overwrites commits that are not here', async () => {
    edit()
    await run({ branch: 'shared' })
    const other = freshClone(hub.origin)
    git(other, 'fetch', '--quiet')
    git(other, 'switch', '--quiet', 'shared')
    edit('theirs.md', 'x', other)
    git(other, 'add', '.')
    git(other, 'commit', '--quiet', '-m', 'Theirs')
    git(other, 'push', '--quiet', 'origin', 'shared')
    edit('mine.md')
    const error = await failureOf(run({ branch: 'shared' }))
    expect(error).toMatchObject({ code: 'conflict', sent: 'no' })
    expect(outside('log', '-1', '--format=%s', 'shared')).toBe('Theirs')
  })

  test('its base: the phase, the setting, the HEAD of the remote', async () => {
    for (const name of ['a', 'b', 'c']) outside('branch', name, 'main')
    outside('symbolic-ref', 'HEAD', 'refs/heads/c')
    edit()
    await run({ branch: 'one' })
    edit('two.md')
    await run({ branch: 'two' }, begin({ base_branch: 'b' }))
    edit('three.md')
    await run({ branch: 'three', base_branch: 'a' }, begin({ base_branch: 'b' }))
    expect(hub.pullRequests.map(({ base }) => base.ref)).toEqual(['c', 'b', 'a'])
    const error = await failureOf(run({ base_branch: 'none' }))
    expect(error).toMatchObject({ code: 'invalid_request', sent: 'no' })
    expect(error.message).toContain('no branch none')
  })

  test.each(['-x', '--upload-pack=touch x', 'a..b', 'a b', 'main'])('branch %p is refused', async branch => {
    edit()
    expect(await failureOf(run({ branch }))).toMatchObject({ code: 'invalid_request', sent: 'no' })
    expect(git(workspace, 'branch', '--show-current')).toBe('main')
  })
})

describe('from a fork', () => {
  beforeEach(() => {
    forkOf(hub, 'dev')
    git(workspace, 'remote', 'add', 'fork', `${hub.url}/dev/app.git`)
    edit()
  })
  const inFork = (...args: string[]) => git(join(hub.origin, '../../dev/app.git'), ...args)

  test.each([
    ['the entry', { push_to: 'fork' }, {}],
    ['the settings', {}, { push_to: 'fork' }],
  ])(
    'that %s names: the branch is pushed there, and the pull request goes to the repository',
    async (_, entry, settings) => {
      const { data } = await run({ branch: 'fix', ...entry }, begin(settings))
      const commit = git(workspace, 'rev-parse', 'HEAD')
      expect(data).toEqual({ number: 1, url: 'https://github.test/acme/app/pull/1', branch: 'fix', commit })
      expect(inFork('rev-parse', 'fix')).toBe(commit)
      expect(outside('branch', '--list', 'fix')).toBe('')
      expect(hub.seen.find(({ method }) => method === 'POST')?.body).toMatchObject({ head: 'dev:fix', base: 'main' })
      expect((await find({ branch: 'fix', ...entry }, begin(settings)))!.data).toMatchObject({ number: 1 })
      edit('two.md')
      expect((await run({ branch: 'fix', ...entry }, begin(settings))).text).toContain('updated')
      expect(hub.pullRequests).toHaveLength(1)
    },
  )

  test('whose remote does not exist, or is on another host, is refused', async () => {
    expect((await failureOf(run({ push_to: 'none' }))).message).toContain('there is no remote none')
    git(workspace, 'remote', 'add', 'other', 'https://elsewhere.test/dev/app.git')
    const error = await failureOf(run({ push_to: 'other' }))
    expect(error.message).toContain('remote other must be on 127.0.0.1, where the credential belongs')
    expect(hub.pullRequests).toEqual([])
  })
})

describe('the address of the API', () => {
  test.each([
    ['https://github.com', 'https://api.github.com/user'],
    ['https://github.com/', 'https://api.github.com/user'],
    ['https://code.acme.test', 'https://code.acme.test/api/v3/user'],
    ['https://code.acme.test/api/v3/', 'https://code.acme.test/api/v3/user'],
    ['https://api.acme.ghe.com', 'https://api.acme.ghe.com/user'],
    ['https://acme.ghe.com/', 'https://api.acme.ghe.com/user'],
  ])('%s leads to %s', async (base_url, url) => {
    const asked: string[] = []
    const at = begin({ base_url })
    const fetch = async (given: string | URL) => {
      asked.push(String(given))
      return Response.json({ login: 'bot' })
    }
    await gitAgent.doctor!({ ...at.context, fetch })
    expect(asked).toEqual([url])
  })

  test.each([
    ['github', 'https://github.com/acme/app', 'https://api.github.com'],
    ['host_a', 'https://code.acme.test/acme', 'https://code.acme.test/api/v3'],
    ['bitbucket', 'https://bitbucket.org/acme/app', 'https://api.bitbucket.org/2.0'],
    ['host_b', 'https://[acme', 'it as https://code.acme.com'],
  ])('of %s: %s is answered with what to write', (provider, base_url, instead) => {
    expect(gitAgent.check!({ [provider]: { base_url } })).toMatchObject({
      [`${provider}.base_url`]: `must be the root of the API, not a page: write ${instead}`,
    })
  })

  test('that answers with a page or with another vendor’s JSON is an error that says so', async () => {
    for (const [answer, code] of [
      [() => new Response('<!doctype html><title>Sign in', { headers: { 'content-type': 'text/html' } }), 'no_json'],
      [() => Response.json({ hello: 'from another service' }), 'unexpected_reply'],
      [() => Response.json([{ number: 1 }]), 'unexpected_reply'],
    ] as const) {
      hub.fail(/^GET \/user$/, answer)
      expect(await failureOf(gitAgent.doctor!(begin().context))).toMatchObject({ code })
      hub.fail(/^GET .*\/pulls$/, answer)
      edit(`${code}.md`)
      expect(await failureOf(run())).toMatchObject({ code, sent: 'no' })
    }
    hub.fail(/^POST .*\/pulls$/, () => Response.json({ id: 7 }))
    edit('last.md')
    expect(await failureOf(run())).toMatchObject({ code: 'unexpected_reply', sent: undefined })
  })

  test('of a repository is no folder', async () => {
    const error = await failureOf(run({ project_dir: 'https://github.com/acme/app' }))
    expect(error).toMatchObject({ code: 'invalid_request', sent: 'no' })
    expect(error.hint).toContain('git clone https://github.com/acme/app')
  })
})

describe('what a repository may not do', () => {
  test('run its hooks; nor, in a folder that is trusted, its helpers, sign, or ask', async () => {
    const trap = join(workspace, '.git/hooks/trap')
    const script = `#!/bin/sh\ntouch ${join(workspace, '..', `${workspace.split('/').at(-1)}-ran`)}\n`
    mkdirSync(join(workspace, '.git/hooks'))
    for (const name of ['pre-commit', 'pre-push', 'post-checkout', 'post-commit', 'trap']) {
      const hook = join(workspace, '.git/hooks', name)
      writeFileSync(hook, script)
      chmodSync(hook, 0o755)
    }
    for (const key of ['core.fsmonitor', 'core.askPass', 'gpg.program', 'credential.helper']) {
      git(workspace, 'config', key, trap)
    }
    git(workspace, 'config', 'commit.gpgSign', 'true')
    edit()
    await run({}, begin({ trusted_folders: [workspace] }))
    expect(existsSync(`${workspace}-ran`)).toBe(false)
    git(workspace, 'config', '--remove-section', 'commit')
    for (const key of ['core.fsmonitor', 'core.askPass', 'gpg.program', 'credential.helper']) {
      git(workspace, 'config', '--unset', key)
    }
    edit('two.md')
    await run()
    expect(existsSync(`${workspace}-ran`)).toBe(false)
  })

  test('learn the token, or have it sent elsewhere, even in a folder that is trusted', async () => {
    const before = readFileSync(join(workspace, '.git/config'), 'utf8')
    using other = fakeGitHub()
    git(workspace, 'config', `url.${other.url}/.insteadOf`, `${hub.url}/`)
    git(workspace, 'config', `url.${other.url}/.pushInsteadOf`, `${hub.url}/`)
    git(workspace, 'config', `http.${hub.url}/.extraHeader`, 'Authorization: Basic b3RoZXI=')
    edit()
    await run({}, begin({ trusted_folders: [workspace] }))
    expect(other.pulls).toEqual([])
    const sent = new Set(hub.pulls.map(({ authorization }) => authorization))
    expect([...sent]).toEqual([`Basic ${btoa(`x-access-token:${TOKEN}`)}`])
    const after = readFileSync(join(workspace, '.git/config'), 'utf8')
    expect(before + after).not.toContain(TOKEN)
    expect(git(workspace, 'log', '--all', '-p')).not.toContain(TOKEN)
  })

  test.each([
    ['http://elsewhere.test/acme/app.git', 'must be on 127.0.0.1, where the credential belongs'],
    ['https://127.0.0.1.elsewhere.test/acme/app.git', 'must be on 127.0.0.1, where the credential belongs'],
    ['https://127.0.0.1', 'does not name a repository'],
  ])('have a remote at %s', async (remote, said) => {
    git(workspace, 'remote', 'set-url', 'origin', remote)
    edit()
    const error = await failureOf(run())
    expect(error).toMatchObject({ code: 'invalid_request', sent: 'no' })
    expect(error.message).toContain(said)
  })

  test('be reached by http beyond this machine', async () => {
    git(workspace, 'remote', 'set-url', 'origin', 'http://code.acme.test/acme/app.git')
    const error = await failureOf(run({}, begin({ base_url: 'https://code.acme.test/api/v3' })))
    expect(error.message).toContain('must use https, because http would expose the credential')
  })

  test('redirect the credential', async () => {
    using other = fakeGitHub()
    hub.fail(/info\/refs/, () => Response.redirect(`${other.url}/acme/app.git/info/refs?service=git-upload-pack`, 302))
    edit()
    expect(await failureOf(run())).toMatchObject({ code: 'redirects', sent: 'no' })
    expect(other.pulls).toEqual([])
  })

  test('lie outside the workspace', async () => {
    expect((await failureOf(run({ project_dir: '..' }))).code).toBe('outside')
    expect((await failureOf(run({ project_dir: '/' }))).code).toBe('outside')
  })
})

test('a credential in the address of a remote is not used', async () => {
  const address = new URL(`${hub.url}/acme/app.git`)
  Object.assign(address, { username: 'someone', password: 'wrong' })
  git(workspace, 'remote', 'set-url', 'origin', address.href)
  edit()
  expect((await run()).data).toMatchObject({ number: 1 })
})

test('a remote in the file system that is trusted is pushed to without the token', async () => {
  git(workspace, 'remote', 'set-url', 'origin', hub.origin)
  edit()
  expect((await run({}, begin({ trusted_folders: [hub.origin] }))).data).toMatchObject({ number: 1 })
  expect(hub.pulls).toEqual([])
})

describe('a bad day', () => {
  test.each([
    [401, 'unauthorized', false],
    [403, 'forbidden', false],
    [404, 'not_found', false],
    [500, 'network', true],
  ])('git answers %d', async (status, code, retryable) => {
    hub.fail(/app\.git/, () => refusal(status, 'no'), { times: 9 })
    edit()
    const error = await failureOf(run())
    expect(error).toMatchObject({ code, retryable, sent: 'no' })
    if (status === 401) expect(error.hint).toContain('agents.git.github.token')
    expect(`${error.message} ${error.hint}`).not.toContain(TOKEN)
  })

  test.each([
    [401, 'unauthorized', 'agents.git.github.token'],
    [403, 'forbidden', 'pull requests'],
    [404, 'not_found', 'check that acme/app exists'],
    [422, 'rejected', undefined],
  ])('the API answers %d', async (status, code, hint) => {
    hub.fail(/^POST .*\/pulls$/, () => refusal(status, { message: 'said by GitHub' }))
    edit()
    const error = await failureOf(run())
    expect(error).toMatchObject({ code, sent: 'no' })
    expect(error.message).toContain('said by GitHub')
    if (hint) expect(error.hint).toContain(hint)
    expect(JSON.stringify([error.message, error.hint])).not.toContain(TOKEN)
  })

  test('a rate limit is waited out; what is read is read again', async () => {
    hub.fail(/^POST .*\/pulls$/, () => refusal(429, '', { 'retry-after': '0' }))
    hub.fail(/^GET .*\/pulls$/, () => refusal(503, '', { 'retry-after': '0' }))
    edit()
    expect((await run()).data).toMatchObject({ number: 1 })
  })

  test('an unknown reviewer fails the phase, with the pull request in the log', async () => {
    edit()
    const at = begin()
    expect(await failureOf(run({ reviewers: ['nobody'] }, at))).toMatchObject({ code: 'rejected', sent: 'no' })
    expect(at.lines.join()).toContain('pull request 1 is open')
    expect((await run({ reviewers: ['ann'] })).data).toMatchObject({ number: 1 })
  })

  test('a run that is stopped before git answers is not taken for an answer', async () => {
    edit()
    const error = await failureOf(run({}, begin({}, { signal: AbortSignal.abort() })))
    expect(error).toMatchObject({ code: 'aborted', sent: 'no' })
  })

  test('the run is stopped in the middle of git', async () => {
    const stop = new AbortController()
    hub.fail(/app\.git/, () => {
      stop.abort(new DOMException('the phase took too long', 'TimeoutError'))
      return new Response(new ReadableStream({}))
    })
    edit()
    const error = await failureOf(run({}, begin({}, { signal: stop.signal })))
    expect(error).toMatchObject({ code: 'aborted', sent: 'no' })
  })
})

describe('a lost reply', () => {
  test('is found by the branch, when it holds what is here', async () => {
    edit()
    expect(await find()).toBeNull()
    await run()
    expect((await find())!.data).toMatchObject({ number: 1, branch: 'cadre/phase-00000000' })
    edit('more.md')
    expect(await find()).toBeNull()
  })

  test.each([true, false])('in a run: one pull request, whether it was opened (%p) or not', async done => {
    hub.fail(/^POST .*\/pulls$/, () => refusal(502), { done })
    edit()
    const phase = { action: 'create_pr', title: 'T', labels: ['bug'], retry: { attempts: 2, backoff: '1ms' } }
    const settings = { provider: 'host_a', host_a: { token: TOKEN, base_url: hub.url } }
    const outcome = await outcomeOf({ agent: gitAgent, name: 'git', settings, phase, workspace })
    expect(outcome).toMatchObject({ state: 'completed', data: { number: 1 } })
    expect(hub.pullRequests).toMatchObject([{ labels: ['bug'] }])
  })
})

describe('on Bitbucket', () => {
  let bucket: FakeBitbucket
  beforeEach(() => {
    bucket = fakeBitbucket()
    workIn(freshClone(`${bucket.url}/acme/app.git`))
  })
  afterEach(() => bucket[Symbol.dispose]())
  const settings = () => ({ provider: 'host_b', host_b: { ...ACCOUNT, base_url: `${bucket.url}/2.0` } })
  const at = () => begin({}, { settings: settings() })

  test('from a fork, and with the address of the workspace', async () => {
    forkOf(bucket, 'dev')
    git(workspace, 'remote', 'add', 'fork', `${bucket.url}/dev/app.git`)
    const account = { ...ACCOUNT, workspace: 'https://bitbucket.org/acme/', base_url: `${bucket.url}/2.0` }
    const own = () => begin({}, { settings: { provider: 'bitbucket', bitbucket: { ...account, push_to: 'fork' } } })
    edit()
    expect((await run({ branch: 'fix' }, own())).data).toMatchObject({ number: 1, branch: 'fix' })
    expect(bucket.pullRequests).toMatchObject([{ source: { repository: { full_name: 'dev/app' } } }])
    edit('two.md')
    expect((await run({ branch: 'fix' }, own())).text).toContain('updated')
  })

  test('a foreign reply is an error', async () => {
    bucket.fail(/pullrequests$/, () => Response.json({ hello: 'from another service' }))
    edit()
    expect(await failureOf(run({}, at()))).toMatchObject({ code: 'unexpected_reply', sent: 'no' })
  })

  test('it is opened, then updated', async () => {
    for (let n = 0; n < 12; n++) addPull(bucket.pullRequests, `other-${n}`)
    edit()
    const reviewers = ['{504c3b62-8120-4f0c-a7bc-87800b9d6f70}', '557058:1']
    const { data } = await run({ title: 'T', body: 'B', draft: true, reviewers, branch: 'feature' }, at())
    const url = 'https://bitbucket.test/acme/app/pull-requests/13'
    expect(data).toMatchObject({ number: 13, url, branch: 'feature' })
    expect(bucket.pullRequests[12]).toMatchObject({
      title: 'T',
      description: 'B',
      draft: true,
      reviewers: [{ uuid: reviewers[0] }, { account_id: reviewers[1] }],
      destination: { branch: { name: 'main' } },
    })
    bucket.pullRequests[12]!.source.commit.hash = git(workspace, 'rev-parse', '--short=12', 'HEAD')
    expect((await find({ branch: 'feature' }, at()))!.data).toMatchObject({ number: 13 })
    edit('two.md')
    expect((await run({ branch: 'feature' }, at())).data).toMatchObject({ number: 13 })
    expect(bucket.pullRequests).toHaveLength(13)
    expect(git(bucket.origin, 'rev-list', '--count', 'feature')).toBe('3')
  })

  test('labels are refused before anything is written', async () => {
    edit()
    expect(await failureOf(run({ labels: ['x'] }, at()))).toMatchObject({ code: 'invalid_request', sent: 'no' })
    expect(bucket.pulls).toEqual([])
  })

  test('pages that lead nowhere, and a credential that expired', async () => {
    edit()
    const next = 'https://api.bitbucket.test/2.0/x?page=2'
    bucket.fail(/^GET .*pullrequests/, () => Response.json({ values: [], next }), { times: 2 })
    expect(await failureOf(run({}, at()))).toMatchObject({ code: 'endless', sent: 'no' })
    bucket.fail(/^GET .*pullrequests/, () => refusal(401))
    expect((await failureOf(run({}, at()))).hint).toContain('agents.git.host_b.api_token')
  })
})

test('an event opens one too', async () => {
  edit()
  const { context } = begin({}, { event: EVENT })
  const { data } = await gitAgent.notify!.run({ action: 'create_pr', title: 'T' }, context)
  expect(data).toMatchObject({ number: 1 })
})

test('the settings of the provider are required, under its own name', () => {
  const missing = (settings: object) => gitAgent.missing!(settings)
  expect(missing({ provider: 'github' })).toEqual(['github.token'])
  expect(missing({ provider: 'host_a', github: { token: 't' } })).toEqual([])
  expect(missing({ provider: 'host_b', host_b: { email: 'e' } })).toEqual(['host_b.api_token', 'host_b.workspace'])
})
