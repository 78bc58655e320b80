// The pull requests of acme/app on GitHub, as far as the git agent goes.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../../lib/json.ts'
import { refusal, type VendorRequest } from '../../lib/testing/fake-vendor.ts'
import { type GitHost, git, gitHost } from './git-host.ts'

export const TOKEN = 'canary-github-token'

interface FakePull {
  number: number
  html_url: string
  title: string
  body: string | null
  draft: boolean
  state: 'open' | 'closed'
  head: { ref: string; sha: string; user: { login: string }; repo: { name: string } }
  base: { ref: string }
  requested_reviewers: { login: string }[]
  requested_teams: { slug: string }[]
  labels: string[]
}

export interface FakeGitHub extends GitHost {
  pullRequests: FakePull[]
}

export function fakeGitHub(): FakeGitHub {
  const pullRequests: FakePull[] = []
  const authorization = `Basic ${btoa(`x-access-token:${TOKEN}`)}`
  const host = gitHost(authorization, request => answer(request, host.origin, pullRequests))
  return { ...host, pullRequests }
}

function answer({ method, path, query, headers, body }: VendorRequest, origin: string, pulls: FakePull[]): Response {
  if (headers.get('authorization') !== `token ${TOKEN}`) return refusal(401, { message: 'Bad credentials' })
  if (!headers.get('user-agent')) return refusal(403, { message: 'Administrative rules: a User-Agent is required' })
  if (method === 'GET' && path === '/user') {
    return Response.json({ login: 'acme-bot', id: 1 }, { headers: { 'x-oauth-scopes': 'repo, workflow' } })
  }
  const rest = /^(?:\/api\/v3)?\/repos\/acme\/app(\/.*)$/.exec(path)?.[1]
  if (!rest) return refusal(404, { message: 'Not Found' })
  const fresh = (pull: FakePull) => ({
    ...pull,
    head: { ...pull.head, sha: tip(repositoryOf(origin, pull.head.user.login), pull.head.ref) ?? '' },
  })
  if (method === 'GET' && rest === '/pulls') {
    const [owner, ref] = (query.get('head') ?? '').split(':')
    // As GitHub does, a filter without an owner filters nothing.
    const shown = pulls.filter(
      ({ state, head }) => state === 'open' && (!ref || (owner === head.user.login && head.ref === ref)),
    )
    return Response.json(shown.map(fresh))
  }
  if (!isObject(body) || !headers.get('content-type')?.startsWith('application/json')) return refusal(400)
  if (method === 'POST' && rest === '/pulls') return open(body, origin, pulls, fresh)
  const [, number, what] = /^\/(?:pulls|issues)\/(\d+)\/(requested_reviewers|labels)$/.exec(rest) ?? []
  const pull = pulls.find(each => each.number === Number(number))
  if (method !== 'POST' || !pull) return refusal(404, { message: 'Not Found' })
  if (what === 'labels') {
    if (!Array.isArray(body.labels) || body.labels.length === 0) return refusal(422, { message: 'Validation Failed' })
    pull.labels = [...new Set([...pull.labels, ...(body.labels as string[])])]
    return Response.json(pull.labels.map(name => ({ name })))
  }
  const [people, teams] = [body.reviewers as string[], body.team_reviewers as string[]]
  if (people.includes('nobody')) return refusal(422, { message: 'Reviews may only be requested from collaborators' })
  pull.requested_reviewers.push(...people.map(login => ({ login })))
  pull.requested_teams.push(...teams.map(slug => ({ slug })))
  return Response.json(fresh(pull), { status: 201 })
}

function open(
  body: Record<string, unknown>,
  origin: string,
  pulls: FakePull[],
  fresh: (pull: FakePull) => FakePull,
): Response {
  const { title, head, base, draft = false, body: text = null } = body
  if (typeof title !== 'string' || typeof head !== 'string' || typeof base !== 'string') return refusal(422)
  const [ref = '', owner = 'acme'] = head.split(':').reverse()
  if (!tip(repositoryOf(origin, owner), ref) || !tip(origin, base))
    return refusal(422, { message: 'head or base is invalid' })
  if (pulls.some(pull => pull.state === 'open' && pull.head.ref === ref && pull.head.user.login === owner)) {
    return refusal(422, { message: `A pull request already exists for ${owner}:${ref}.` })
  }
  const number = pulls.length + 1
  const pull: FakePull = {
    number,
    html_url: `https://github.test/acme/app/pull/${number}`,
    title,
    body: text as string | null,
    draft: draft === true,
    state: 'open',
    head: { ref, sha: '', user: { login: owner }, repo: { name: 'app' } },
    base: { ref: base },
    requested_reviewers: [],
    requested_teams: [],
    labels: [],
  }
  pulls.push(pull)
  return Response.json(fresh(pull), { status: 201 })
}

/** The folder of a repository: acme/app, or a fork of it. */
function repositoryOf(origin: string, owner: string): string {
  return join(origin, '../..', owner, 'app.git')
}

function tip(origin: string, branch: string): string | null {
  if (!existsSync(origin)) return null
  return git(origin, 'for-each-ref', '--format=%(objectname)', `refs/heads/${branch}`) || null
}
