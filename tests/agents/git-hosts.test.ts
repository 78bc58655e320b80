// What every agent owes, of the git agent with each of its code hosts.

import { describe } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonObject } from '../../lib/json.ts'
import { testAgent } from '../../lib/testing/testing.ts'
import { ACCOUNT, fakeBitbucket } from '../vendors/bitbucket.ts'
import { freshClone, type GitHost } from '../vendors/git-host.ts'
import { fakeGitHub, TOKEN } from '../vendors/github.ts'
import { EVENT, inEmptyHome } from './git-clone.ts'

inEmptyHome()

const HOSTS: Record<string, { vendor: () => GitHost; settings: (host: GitHost) => JsonObject; scope: string }> = {
  github: {
    vendor: fakeGitHub,
    settings: ({ url }) => ({ provider: 'github', github: { token: TOKEN, base_url: url } }),
    scope: 'contents, pull requests and issues: write',
  },
  bitbucket: {
    vendor: fakeBitbucket,
    settings: ({ url }) => ({ provider: 'bitbucket', bitbucket: { ...ACCOUNT, base_url: `${url}/2.0` } }),
    scope: 'write:pullrequest:bitbucket',
  },
}

describe.each(Object.entries(HOSTS))('%s', async (_, { vendor, settings, scope }) => {
  const example = ({ url }: GitHost) => ({
    entry: { title: 'T' },
    prepare: (at: string) => writeFileSync(join(freshClone(`${url}/acme/app.git`, at), 'new.md'), 'new\n'),
    request: /^POST .*\/(pulls|pullrequests)$/,
    names: 'acme/app',
    scope,
  })
  await testAgent({
    file: join(import.meta.dir, '../../agents/git.ts'),
    vendor,
    settings,
    examples: { create_pr: example, notify: host => ({ ...example(host), event: EVENT }) },
  })
})
