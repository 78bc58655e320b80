// The pull requests of acme/app on Bitbucket Cloud, as far as the git agent goes.

import { join } from 'node:path'
import { isObject } from '../../lib/json.ts'
import { refusal, type VendorRequest } from '../../lib/testing/fake-vendor.ts'
import { type GitHost, git, gitHost } from './git-host.ts'

export const ACCOUNT = { email: 'bot@acme.test', api_token: 'canary-bitbucket-token', workspace: 'acme' }

interface FakePull {
  id: number
  title: string
  description: string
  state: 'OPEN' | 'MERGED'
  draft: boolean
  reviewers: object[]
  source: { branch: { name: string }; commit: { hash: string }; repository: { full_name: string } }
  destination: { branch: { name: string } }
  links: { html: { href: string } }
}

export interface FakeBitbucket extends GitHost {
  pullRequests: FakePull[]
}

const PAGE = 10
const PATH = '/2.0/repositories/acme/app/pullrequests'

export function fakeBitbucket(): FakeBitbucket {
  const pullRequests: FakePull[] = []
  const authorization = `Basic ${btoa(`x-bitbucket-api-token-auth:${ACCOUNT.api_token}`)}`
  const host = gitHost(authorization, request => answer(request, host, pullRequests))
  return { ...host, pullRequests }
}

function answer({ method, path, query, headers, body }: VendorRequest, host: GitHost, pulls: FakePull[]): Response {
  const authorization = `Basic ${btoa(`${ACCOUNT.email}:${ACCOUNT.api_token}`)}`
  if (headers.get('authorization') !== authorization) return refusal(401)
  if (method === 'GET' && path === '/2.0/user') return Response.json({ display_name: 'Acme Bot', uuid: '{1}' })
  if (method === 'GET' && path === '/2.0/repositories/acme') return Response.json({ values: [], pagelen: 1 })
  if (path !== PATH) return refusal(404, { type: 'error', error: { message: 'Repository not found' } })
  if (method === 'GET') {
    const page = Number(query.get('page') ?? 1)
    const open = pulls.filter(({ state }) => state === (query.get('state') ?? 'OPEN'))
    const values = open.slice((page - 1) * PAGE, page * PAGE)
    const next =
      page * PAGE < open.length ? { next: `https://api.bitbucket.test${PATH}?state=OPEN&page=${page + 1}` } : {}
    return Response.json({ size: open.length, page, pagelen: PAGE, values, ...next })
  }
  if (method !== 'POST' || !isObject(body)) return refusal(405)
  const { title, source, destination, description = '', draft = false, reviewers = [] } = body as never as FakePull
  if (!title || !source?.branch?.name) return refusal(400, { type: 'error', error: { message: 'required key' } })
  const from = source.repository?.full_name ?? 'acme/app'
  const hash = git(
    join(host.origin, '../..', `${from}.git`),
    'rev-parse',
    '--short=12',
    `refs/heads/${source.branch.name}`,
  )
  const pull = addPull(pulls, source.branch.name, { title, description, draft, reviewers, destination }, hash, from)
  return Response.json(pull, { status: 201 })
}

export function addPull(
  pulls: FakePull[],
  branch: string,
  fields: Partial<FakePull> = {},
  hash = '',
  from = 'acme/app',
): FakePull {
  const id = pulls.length + 1
  const pull: FakePull = {
    id,
    title: 'Another',
    description: '',
    state: 'OPEN',
    draft: false,
    reviewers: [],
    source: { branch: { name: branch }, commit: { hash }, repository: { full_name: from } },
    destination: { branch: { name: 'main' } },
    links: { html: { href: `https://bitbucket.test/acme/app/pull-requests/${id}` } },
    ...fields,
  }
  pulls.push(pull)
  return pull
}
