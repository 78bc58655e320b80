// Requests in the name of another agent: to which addresses its authorization goes, and what a team can do about it.

import { describe, expect, test } from 'bun:test'
import { AgentError } from '../../lib/agent/core/agent-error.ts'
import { type Account, addressBelow } from '../../lib/agent/net/account.ts'
import { testContext } from '../support/context.ts'
import { faultServer } from '../support/faults.ts'

const TOKEN = 'Bearer canary-of-an-account'
const accountAt = (base: string): Account => ({ name: 'crm', base, headers: { authorization: TOKEN } })
const TENANT = accountAt('https://api.example.com/ex/site-a/')

async function failure(work: Promise<unknown>): Promise<AgentError> {
  const error = await work.then(
    () => null,
    thrown => thrown,
  )
  expect(error).toBeInstanceOf(AgentError)
  return error
}

describe('the address of a request', () => {
  test.each([
    ['/items/1?a=b', 'https://api.example.com/ex/site-a/items/1?a=b'],
    ['/', 'https://api.example.com/ex/site-a/'],
    ['//evil.example/x', 'https://api.example.com/ex/site-a//evil.example/x'],
    ['https://api.example.com/ex/site-a/items', 'https://api.example.com/ex/site-a/items'],
    ['HTTPS://API.EXAMPLE.COM:443/ex/site-a', 'https://api.example.com/ex/site-a'],
    ['/a/../b', 'https://api.example.com/ex/site-a/b'],
    ['/%41..%42', 'https://api.example.com/ex/site-a/%41..%42'],
  ])('%s lies below that of the account', (url, address) => {
    expect(addressBelow(TENANT, url).href).toBe(address)
  })

  test.each([
    'https://evil.example/ex/site-a/',
    'http://api.example.com/ex/site-a/items',
    'https://api.example.com:8443/ex/site-a/items',
    'https://api.example.com./ex/site-a/items',
    'https://api.example.com@evil.example/ex/site-a/items',
    'https://me:secret@api.example.com/ex/site-a/items',
    'https://me@api.example.com/ex/site-a/items',
    'https://аpi.example.com/ex/site-a/items',
    'https://xn--pi-7kc.example.com/ex/site-a/items',
    'https://api.example.com.evil.example/ex/site-a/',
    'https://api.example.com/ex/site-b/items',
    'https://api.example.com/ex/site-ab/items',
    'https://api.example.com/',
    'https:\\\\evil.example\\ex\\site-a\\',
    '/../site-b/items',
    '/items/../../site-b',
    '/%2e%2e/site-b/items',
    '/.%2E/site-b/items',
    '/items/..\\..\\..\\site-b',
    '/a/..%2f..%2fsite-b',
    '/a/%2e%2e%2f%2e%2e%2fsite-b',
    '/a/%252e%252e%252fsite-b',
    '/a/%25252e%25252e%25255csite-b',
    '/..;/site-b/items',
    '/..;jsessionid=1/site-b',
    '/.\t./site-b',
    'items',
    '?a',
    '',
    'file:///ex/site-a/',
    'ftp://api.example.com/ex/site-a/items',
  ])('%s does not', url => {
    expect(() => addressBelow(TENANT, url)).toThrow(AgentError)
  })

  test('an error names neither a path nor a query, which may have keys', () => {
    const url = 'https://evil.example/canary-path?k=canary-query'
    expect(() => addressBelow(TENANT, url)).toThrow(
      'https://evil.example does not lie below the address of crm, https://api.example.com/ex/site-a',
    )
  })
})

describe('fetch in the name of an account', () => {
  test('sends its authorization with the headers of the team, and not where the team sets it itself', async () => {
    using server = faultServer()
    server.on('/api/x', () => new Response('x'))
    const { context } = testContext({ account: accountAt(`${server.url}/api`) })
    await context.fetch(`${server.url}/api/x`, { headers: { 'x-mine': 'm' } })
    expect(server.seen[0]!.headers).toMatchObject({ authorization: TOKEN, 'x-mine': 'm' })
    for (const name of ['authorization', 'Authorization', 'AUTHORIZATION']) {
      const error = await failure(context.fetch(`${server.url}/api/x`, { headers: { [name]: 'Bearer mine' } }))
      expect([error.code, error.sent]).toEqual(['invalid_request', 'no'])
    }
    const outside = await failure(context.fetch(`${server.url}/other`))
    expect([outside.code, outside.sent, server.seen.length]).toEqual(['refused', 'no', 1])
  })

  test('an account with keys of its own cannot be mixed with an authorization of the team', async () => {
    using server = faultServer()
    server.on('/x', () => new Response('x'))
    const account = { name: 'metrics', base: server.url, headers: { 'DD-API-KEY': 'k' } }
    const { context } = testContext({ account })
    for (const headers of [{ 'dd-api-key': 'mine' }, { authorization: 'Bearer mine' }]) {
      expect((await failure(context.fetch(`${server.url}/x`, { headers }))).code).toBe('invalid_request')
    }
    await context.fetch(`${server.url}/x`)
    expect(server.seen.map(({ headers }) => headers['dd-api-key'])).toEqual(['k'])
  })

  test.each([301, 302, 303, 307, 308])('a redirect (%i) takes it along below the address only', async status => {
    using server = faultServer()
    using other = faultServer()
    const account = accountAt(`${server.url}/api`)
    const { context } = testContext({ account, network: { allow: ['127.0.0.1'], literalOrigins: [] } })
    const to = (location: string) => () => new Response('', { status, headers: { location } })
    server.on('/api/inside', to('/api/end'))
    server.on('/api/above', to('/end'))
    server.on('/api/encoded', to('/api/%2e%2e/end'))
    server.on('/api/twisted', to('/api/..%2fend'))
    server.on('/api/other', to(`${other.url}/back`))
    for (const path of ['/api/end', '/end', '/api/..%2fend']) server.on(path, () => new Response('end'))
    other.on('/back', to(`${server.url}/api/end`))
    const last = async (path: string) => {
      await context.fetch(`${server.url}/api/${path}`)
      return server.seen.at(-1)!.headers.authorization ?? null
    }
    expect(await last('inside')).toBe(TOKEN)
    for (const path of ['above', 'encoded', 'twisted', 'other']) expect([path, await last(path)]).toEqual([path, null])
    expect(other.seen.map(({ headers }) => headers.authorization ?? null)).toEqual([null])
  })

  test('a retry sends it again, and to the same address', async () => {
    using server = faultServer()
    let asked = 0
    server.on('/api/x', () => new Response('', { status: ++asked === 1 ? 503 : 200 }))
    const { context } = testContext({ account: accountAt(`${server.url}/api`) })
    expect((await context.fetch(`${server.url}/api/x`)).status).toBe(200)
    expect(server.seen.map(({ headers }) => headers.authorization)).toEqual([TOKEN, TOKEN])
  })
})
