// https://docs.github.com/en/rest/pulls/pulls
// https://developer.atlassian.com/cloud/bitbucket/rest/api-group-pullrequests/

import { afterAll } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import agent from '../../../agents/git.ts'
import { refusal } from '../../../lib/testing/fake-vendor.ts'
import { freshClone, type GitHost, gitHost } from '../../vendors/git-host.ts'
import { type Contract, LOST } from '../contract.ts'
import { at, basicOf, type Call, isText } from '../recorder.ts'

const TOKEN = 'canary-github-token'
const PULLS = '/repos/{owner}/{repo}/pulls'
const LIST = `GET ${PULLS}`
const OPEN = `POST ${PULLS}`
const REVIEWERS = `POST ${PULLS}/{pull_number}/requested_reviewers`
const LABELS = 'POST /repos/{owner}/{repo}/issues/{issue_number}/labels'

const USER = 'GET /user'

const nothing = () => []
const hosts: GitHost[] = []
afterAll(() => {
  for (const host of hosts.splice(0)) host[Symbol.dispose]()
})

/** A clone with a change in it; what it pushes goes to a repository of its own. */
function changed(login: string): () => string {
  return () => {
    const host = gitHost(`Basic ${btoa(login)}`, () => refusal(404))
    hosts.push(host)
    const workspace = freshClone(`${host.url}/acme/app.git`)
    writeFileSync(join(workspace, 'new.md'), 'new\n')
    return workspace
  }
}
const workspace = changed(`x-access-token:${TOKEN}`)

export const github: Contract = {
  document: 'git-host_a',
  name: 'git',
  agent,
  settings: url => ({ provider: 'github', github: { token: TOKEN, base_url: url } }),
  rules({ operation, headers, query, body }: Call) {
    const asked = [at(body, 'reviewers'), at(body, 'team_reviewers')].flat().filter(isText)
    const labels = at(body, 'labels')
    return [
      !/^(token|Bearer) canary-github-token$/.test(headers.get('authorization') ?? '') && 'no credential',
      !headers.get('user-agent') && 'no user-agent',
      headers.get('accept') !== 'application/vnd.github+json' && 'not the media type that GitHub recommends',
      operation === LIST && !/^[^:]+:.+$/.test(query.get('head') ?? '') && 'head without its owner filters nothing',
      operation === OPEN && !isText(at(body, 'title')) && 'no title',
      operation === REVIEWERS && asked.length === 0 && 'nobody is asked',
      operation === LABELS && !(Array.isArray(labels) && labels.every(isText)) && 'no labels',
    ]
  },
  undeclared: [
    {
      operation: USER,
      why: 'the account is no part of the document',
      page: 'https://docs.github.com/en/rest/users/users#get-the-authenticated-user',
    },
  ],
  doctor: {
    changes: { [USER]: [() => ({ login: 'ada' })] },
    calls: [USER],
  },
  cases: [
    {
      title: 'a draft with reviewers and labels',
      action: 'create_pr',
      phase: { title: 'New', body: 'Text', draft: true, reviewers: ['ann', 'acme/core'], labels: ['bug'] },
      workspace,
      changes: { [LIST]: [nothing] },
      calls: [LIST, OPEN, REVIEWERS, LABELS],
    },
    {
      title: 'one that may be open already',
      action: 'create_pr',
      phase: {},
      workspace,
      changes: { [LIST]: [nothing, nothing], [OPEN]: [LOST] },
      calls: [LIST, OPEN, LIST],
      state: 'failed',
    },
  ],
}

const ACCOUNT = { email: 'bot@acme.test', api_token: 'canary-bitbucket-token', workspace: 'acme' }
const REPOSITORIES = 'GET /2.0/repositories/acme'
const PULL_REQUESTS = '/2.0/repositories/{workspace}/{repo_slug}/pullrequests'

export const bitbucket: Contract = {
  document: 'git-host_b',
  name: 'git',
  agent,
  settings: url => ({ provider: 'bitbucket', bitbucket: { ...ACCOUNT, base_url: `${url}/2.0` } }),
  rules(call: Call) {
    const { operation, body } = call
    const isOpen = operation === `POST ${PULL_REQUESTS}`
    const reviewers = (at(body, 'reviewers') ?? []) as unknown[]
    return [
      basicOf(call) !== `${ACCOUNT.email}:${ACCOUNT.api_token}` && 'no credential',
      isOpen && !isText(at(body, 'title')) && 'no title',
      isOpen && !isText(at(body, 'source', 'branch', 'name')) && 'no source.branch.name',
      isOpen && !isText(at(body, 'destination', 'branch', 'name')) && 'no destination.branch.name',
      !reviewers.every(person => isText(at(person, 'uuid') ?? at(person, 'account_id'))) && 'a reviewer without an id',
    ]
  },
  undeclared: [
    {
      operation: REPOSITORIES,
      why: 'lists of repositories are no part of the document',
      page: 'https://developer.atlassian.com/cloud/bitbucket/rest/api-group-repositories/',
    },
    {
      operation: `GET ${PULL_REQUESTS}`,
      names: ['page'],
      why: 'it stands in the link to the next page, which is followed',
      page: 'https://developer.atlassian.com/cloud/bitbucket/rest/intro/#pagination',
    },
  ],
  doctor: { changes: { [REPOSITORIES]: [() => ({ values: [] })] }, calls: ['GET /2.0/user', REPOSITORIES] },
  cases: [
    {
      title: 'with reviewers, none being open on two pages',
      action: 'create_pr',
      phase: {
        title: 'New',
        body: 'Text',
        draft: true,
        reviewers: ['{504c3b62-8120-4f0c-a7bc-87800b9d6f70}', '5b10a2844'],
      },
      workspace: changed(`x-bitbucket-api-token-auth:${ACCOUNT.api_token}`),
      changes: {
        [`GET ${PULL_REQUESTS}`]: [
          answer => ({ ...answer, next: `https://api.bitbucket.org/2.0/x?state=OPEN&page=2` }),
          answer => ({ ...answer, next: undefined }),
        ],
      },
      calls: [`GET ${PULL_REQUESTS}`, `GET ${PULL_REQUESTS}`, `POST ${PULL_REQUESTS}`],
    },
  ],
}
