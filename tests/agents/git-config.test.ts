// What the configuration of a repository may not do: run a program beside the token, have it sent elsewhere, or lead git
// to another place; unless the operator trusts the folder. With real git, and a real server.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import gitAgent from '../../agents/git.ts'
import type { AgentContext } from '../../lib/agent/agent-context.ts'
import { refusal } from '../../lib/testing/fake-vendor.ts'
import { certificate } from '../support/certificate.ts'
import { testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { folder } from '../support/folder.ts'
import { freshClone, git } from '../vendors/git-host.ts'
import { fakeGitHub, TOKEN } from '../vendors/github.ts'
import { cloneForEachTest, hub, workspace } from './git-clone.ts'

cloneForEachTest()

let ran: string
/** A command that leaves its whole environment in the file `ran`, and what it was given. */
let trap: string
beforeEach(() => {
  const at = folder()
  ran = join(at, 'ran')
  trap = join(at, 'trap')
  writeFileSync(trap, `#!/bin/sh\nenv >> ${ran}\necho "$@" >> ${ran}\ncat\n`)
  chmodSync(trap, 0o755)
})

const CREDENTIAL = btoa(`x-access-token:${TOKEN}`)
const config = (...args: string[]) => git(workspace, 'config', ...args)
const edit = (name = 'new.md', text = 'new\n', at = workspace) => writeFileSync(join(at, name), text)

function run({ base_url = hub.url, ...github }: Record<string, unknown> = {}) {
  const { context } = testContext({
    agent: 'code',
    action: 'create_pr',
    settings: { provider: 'github', github: { token: TOKEN, base_url, ...github } },
    network: { allow: [], literalOrigins: [] },
    effect: 'once',
    workspace,
  })
  return gitAgent.actions!.create_pr!.run({}, context as AgentContext<never>)
}

async function expectRefused(key: string): Promise<void> {
  const error = await failureOf(run())
  expect(error).toMatchObject({ code: 'invalid_request', sent: 'no' })
  expect(error.message.toLowerCase()).toContain(`[code.create_pr] the repository's own configuration has ${key}`)
  expect(error.hint).toContain('agents.code.github.trusted_folders: ["')
  expect(hub.pulls).toEqual([])
  expect(existsSync(ran)).toBe(false)
}

describe('what would run beside the token', () => {
  test('in a folder that is trusted, a helper for credentials that is set for the very address is not asked', async () => {
    config(`credential.${hub.url}.helper`, `!${trap}`)
    config(`credential.${hub.url}/acme/app.git.helper`, `!${trap}`)
    hub.fail(/^GET .*info\/refs/, () => refusal(401, '', { 'www-authenticate': 'Basic realm="git"' }), { times: 9 })
    edit()
    expect(await failureOf(run({ trusted_folders: [workspace] }))).toMatchObject({ code: 'unauthorized' })
    expect(existsSync(ran)).toBe(false)
  })

  test('in a folder that is trusted, a commit is not verified by a program', async () => {
    config('log.showSignature', 'true')
    config('gpg.program', trap)
    git(workspace, 'switch', '--quiet', '--create', 'signed')
    git(workspace, 'commit', '--quiet', '--allow-empty', '-m', 'Signed')
    const signature = '-----BEGIN PGP SIGNATURE-----\n \n eA==\n -----END PGP SIGNATURE-----'
    const signed = git(workspace, 'cat-file', 'commit', 'HEAD').replace('\n\n', `\ngpgsig ${signature}\n\n`)
    edit('.git/signed', `${signed}\n`)
    git(workspace, 'reset', '--quiet', '--hard', git(workspace, 'hash-object', '-t', 'commit', '-w', '.git/signed'))
    expect((await run({ trusted_folders: [workspace] })).data).toMatchObject({ number: 1, branch: 'signed' })
    expect(existsSync(ran)).toBe(false)
  })

  const FILTERS = ['filter.x.clean', 'filter.x.smudge', 'filter.x.process', 'filter.lfs.clean']
  const TRANSFERS = ['lfs.customtransfer.x.path', 'lfs.standalonetransferagent']
  const OF_ADDRESS = 'lfs.https://code.acme.test/.standalonetransferagent'
  const OTHERS = ['core.alternateRefsCommand', 'credential.helper', 'gpg.program', 'core.fsmonitor', 'core.sshCommand']
  test.each([...FILTERS, ...TRANSFERS, OF_ADDRESS, 'lfs.extension.x.clean', 'hook.x.command', ...OTHERS])(
    '%s is refused',
    async key => {
      edit('.gitattributes', '* filter=x\n')
      config(key, trap)
      edit()
      await expectRefused(key.toLowerCase())
    },
  )

  test.each(['include.path', 'includeIf.gitdir:/.path'])('a filter by %s is refused', async key => {
    const included = join(folder(), 'config')
    config('--file', included, 'filter.x.clean', trap)
    config(key, included)
    edit('.gitattributes', '* filter=x\n')
    await expectRefused(key.toLowerCase())
  })

  test('a file that is included on another branch is refused', async () => {
    config('includeIf.onbranch:cadre/**.path', join(folder(), 'config'))
    edit()
    await expectRefused('includeif.onbranch:cadre/**.path')
  })

  test('a filter of the worktree’s own configuration is refused', async () => {
    config('extensions.worktreeConfig', 'true')
    config('--worktree', 'filter.x.clean', trap)
    edit('.gitattributes', '* filter=x\n')
    await expectRefused('extensions.worktreeconfig')
  })

  test('a filter of a submodule is refused', async () => {
    const module = freshClone(hub.origin)
    git(workspace, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', module, 'lib')
    git(workspace, 'commit', '--quiet', '-m', 'A submodule')
    git(join(workspace, 'lib'), 'config', 'filter.x.clean', trap)
    writeFileSync(join(workspace, 'lib/.gitattributes'), '* filter=x\n')
    edit('readme.md', 'other\n', join(workspace, 'lib'))
    edit()
    await expectRefused('filter.x.clean')
  })

  test('a filter of the person is theirs to have', async () => {
    git(workspace, 'config', '--file', join(process.env.HOME!, '.gitconfig'), 'filter.x.clean', trap)
    edit('.gitattributes', '*.md filter=x\n')
    edit()
    expect((await run()).data).toMatchObject({ number: 1 })
    expect(readFileSync(ran, 'utf8')).not.toContain(CREDENTIAL)
    writeFileSync(join(process.env.HOME!, '.gitconfig'), '')
  })
})

describe('what would lead git elsewhere', () => {
  test('another address for exactly this one is refused', async () => {
    using other = fakeGitHub()
    config(`url.${other.url}/acme/app.git.insteadOf`, `${hub.url}/acme/app.git`)
    edit()
    await expectRefused(`url.${other.url}/acme/app.git.insteadof`)
    expect(other.pulls).toEqual([])
  })

  test('a remote that is named as the address is refused', async () => {
    using other = fakeGitHub()
    config(`remote.${hub.url}/acme/app.git.url`, `${other.url}/acme/app.git`)
    edit()
    await expectRefused(`remote.${hub.url}/acme/app.git.url`)
    expect(other.pulls).toEqual([])
  })

  const OF_TLS = ['sslBackend', 'sslCAInfo', 'proxySSLCAInfo', 'proxySSLCert', 'proxySSLKey', 'schannelUseSSLCAInfo']
  test.each([
    'fetch.bundleURI',
    'http.schannelCheckRevoke',
    ...OF_TLS.flatMap(key => [`http.${key}`, `http.https://code.acme.test/.${key}`]),
  ])('%s is refused', async key => {
    config(key, `${hub.url}/elsewhere`)
    edit()
    await expectRefused(key.toLowerCase())
    expect(hub.seen).toEqual([])
  })

  test('a certificate that nobody vouches for is refused, though the repository would not check it', async () => {
    const { cert, key } = certificate(folder())
    const asked: string[] = []
    using server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      tls: { cert: Bun.file(cert), key: Bun.file(key) },
      fetch({ headers }) {
        asked.push(headers.get('authorization') ?? 'nothing')
        return new Response('', { status: 404 })
      },
    })
    const base = `https://localhost:${server.port}`
    const address = `${base}/acme/app.git`
    git(workspace, 'remote', 'set-url', 'origin', address)
    for (const each of ['http', `http.${base}/`, `http.${address}`, `http.${address}/`])
      config(`${each}.sslVerify`, 'false')
    // git alone obeys them.
    await Bun.$`git ls-remote ${address}`.cwd(workspace).nothrow().quiet()
    expect(asked.splice(0)).toEqual(['nothing'])
    edit()
    const error = await failureOf(run({ base_url: `${base}/api/v3`, trusted_folders: [workspace] }))
    expect(error.message).toContain('certificate')
    expect(asked).toEqual([])
  })

  test.each(['uploadpack', 'receivepack', 'vcs'])('remote.origin.%s is refused', async key => {
    git(workspace, 'remote', 'set-url', 'origin', hub.origin)
    config(`remote.origin.${key}`, trap)
    edit()
    await expectRefused(`remote.origin.${key}`)
  })

  describe('a proxy', () => {
    let proxy: Server
    let asked: string[]
    beforeEach(async () => {
      asked = []
      proxy = createServer(socket =>
        socket.on('data', data => {
          asked.push(`${data}`)
          socket.destroy()
        }),
      )
      await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
    })
    afterEach(() => {
      proxy.close()
      writeFileSync(join(process.env.HOME!, '.gitconfig'), '')
    })
    const url = () => `http://127.0.0.1:${(proxy.address() as { port: number }).port}`
    const BASE = 'https://code.acme.test/acme/app.git'

    test.each(['http.proxy', 'http.https://code.acme.test/.proxy', `http.${BASE}.proxy`, 'remote.origin.proxy'])(
      'by %s of the repository is refused',
      async key => {
        git(workspace, 'remote', 'set-url', 'origin', BASE)
        config(key, url())
        edit()
        await expectRefused(key.toLowerCase())
        expect(asked).toEqual([])
      },
    )

    test.each(['person', 'folder that is trusted'])('of the %s is used', async whose => {
      git(workspace, 'remote', 'set-url', 'origin', BASE)
      if (whose === 'person') config('--file', join(process.env.HOME!, '.gitconfig'), 'http.proxy', url())
      else config('http.proxy', url())
      edit()
      const trusted_folders = whose === 'person' ? [] : [workspace]
      await failureOf(run({ base_url: 'https://code.acme.test/api/v3', trusted_folders }))
      expect(asked.join()).toStartWith('CONNECT code.acme.test:443')
      expect(asked.join()).not.toContain(CREDENTIAL)
    })
  })

  test('a command that stands for ssh is the person’s, not the repository’s', async () => {
    const own = join(folder(), 'own')
    const script = `${own}.sh`
    writeFileSync(script, `#!/bin/sh\ntouch ${own}\nexit 1\n`)
    chmodSync(script, 0o755)
    git(workspace, 'remote', 'set-url', 'origin', 'ssh://git@elsewhere.acme.test/acme/app.git')
    config('--file', join(process.env.HOME!, '.gitconfig'), 'core.sshCommand', script)
    edit()
    await failureOf(run())
    expect(existsSync(own)).toBe(true)
    config('core.sshCommand', trap)
    await expectRefused('core.sshcommand')
    writeFileSync(join(process.env.HOME!, '.gitconfig'), '')
  })
})

describe('a folder that is trusted', () => {
  test.each([
    ['by its path', ''],
    ['by one above it', '..'],
    ['by a link', 'link'],
  ])('%s runs its filter', async (_, at) => {
    const link = join(folder(), 'link')
    if (at === 'link') await Bun.$`ln -s ${workspace} ${link}`
    config('filter.x.clean', trap)
    edit('.gitattributes', '*.md filter=x\n')
    edit()
    const trusted_folders = ['/nowhere', at === 'link' ? link : join(workspace, at)]
    expect((await run({ trusted_folders })).data).toMatchObject({ number: 1 })
    expect(readFileSync(ran, 'utf8')).not.toContain(CREDENTIAL)
  })

  test('is none that only begins alike', async () => {
    config('filter.x.clean', trap)
    edit()
    const error = await failureOf(run({ trusted_folders: [workspace.slice(0, -1)] }))
    expect(error.message).toContain('filter.x.clean')
  })
})
