import { describe, expect, test } from 'bun:test'
import { AgentError } from '../../lib/agent/core/agent-error.ts'
import type { Effect } from '../../lib/agent/core/effect.ts'
import { guardedFetch } from '../../lib/agent/fetch.ts'
import type { FetchOptions } from '../../lib/agent/net/requests.ts'
import { faultServer, rawServer } from '../support/faults.ts'
import { fetcher, NOW } from '../support/fetcher.ts'

async function failure(work: Promise<unknown>): Promise<AgentError> {
  try {
    await work
  } catch (error) {
    if (error instanceof AgentError) return error
    throw error
  }
  throw new Error('expected a failure')
}

const DATE = new Date(NOW).toUTCString()

describe('retries', () => {
  test.each([
    ['seconds', '7', 7_000],
    ['a date', new Date(NOW + 90_000).toUTCString(), 90_000],
    ['a date that has passed', new Date(NOW - 90_000).toUTCString(), 0],
    ['garbage', 'soon', 250],
    ['a negative number', '-5', 250],
    ['nothing', null, 250],
  ])('429 with Retry-After: %s', async (_, header, wait) => {
    using server = faultServer()
    server.on('/', (_, count) =>
      count === 1
        ? new Response('', { status: 429, headers: { date: DATE, ...(header && { 'retry-after': header }) } })
        : new Response('ok'),
    )
    const { fetch, waits, lines } = fetcher({})
    expect(await (await fetch(server.url)).text()).toBe('ok')
    expect(waits).toEqual([wait])
    expect(lines[0]).toStartWith('waiting: ')
    if (wait === 7_000) expect(lines[0]).toBe('waiting: rate limit until 2026-01-01T00:00:07.000Z')
  })

  test('a Retry-After beyond the bound is not waited for', async () => {
    using server = faultServer()
    server.on('/', () => new Response('', { status: 429, headers: { 'retry-after': '301' } }))
    const { fetch, waits } = fetcher({})
    expect((await fetch(server.url)).status).toBe(429)
    expect(waits).toEqual([])
  })

  test('all tries and waits together are bounded', async () => {
    using server = faultServer()
    server.on('/', () => new Response('', { status: 429, headers: { 'retry-after': '290' } }))
    const { fetch, waits } = fetcher({})
    await fetch(server.url, { attempts: 100 })
    expect(waits).toEqual([290_000, 290_000, 290_000])
  })

  test('500, then 200; backoff doubles', async () => {
    using server = faultServer()
    server.on('/', (_, count) => new Response('', { status: count < 4 ? 500 : 200 }))
    const { fetch, waits } = fetcher({})
    expect((await fetch(server.url)).status).toBe(200)
    expect(waits).toEqual([250, 500, 1_000])
  })

  test.each([400, 401, 404, 409, 410, 422, 501])('%d is returned at once', async status => {
    using server = faultServer()
    server.on('/', () => new Response('', { status }))
    const { fetch } = fetcher({})
    expect((await fetch(server.url)).status).toBe(status)
    expect(server.seen).toHaveLength(1)
  })

  const repeated: [Effect, string, number, number][] = [
    ['read', 'GET', 503, 4],
    ['read', 'POST', 503, 4],
    ['idempotent', 'PUT', 503, 4],
    ['idempotent', 'DELETE', 408, 4],
    ['idempotent', 'POST', 503, 1],
    ['once', 'GET', 503, 4],
    ['once', 'POST', 503, 1],
    ['once', 'POST', 408, 1],
    ['once', 'PUT', 500, 1],
    ['once', 'DELETE', 500, 1],
    ['once', 'POST', 429, 4],
  ]
  test.each(repeated)('a %s action: %s that answers %d is tried %d times', async (effect, method, status, tries) => {
    using server = faultServer()
    server.on('/', () => new Response('', { status }))
    const { fetch } = fetcher({ effect })
    expect((await fetch(server.url, { method, ...(method !== 'GET' && { body: 'x' }) })).status).toBe(status)
    expect(server.seen).toHaveLength(tries)
  })

  test('a connection that is reset: GET is repeated, a once POST or PUT is sent a single time', async () => {
    let count = 0
    using server = await rawServer(socket => {
      count++
      socket.resetAndDestroy()
    })
    const get = await failure(fetcher({}).fetch(server.url))
    expect([count, get.retryable, get.sent]).toEqual([4, true, 'unknown'])
    for (const method of ['POST', 'PUT']) {
      count = 0
      const error = await failure(fetcher({ effect: 'once' }).fetch(server.url, { method, body: 'x' }))
      expect([count, error.sent]).toEqual([1, 'unknown'])
    }
  })

  test('a once PUT on a connection that the server kept and resets is not sent again by the runtime', async () => {
    let puts = 0
    using server = await rawServer((socket, head) => {
      const answer = (request: string) => {
        if (request.startsWith('PUT')) {
          puts++
          socket.resetAndDestroy()
        } else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
      }
      answer(head)
      socket.on('data', data => answer(String(data)))
    })
    const { fetch } = fetcher({ effect: 'once' })
    await (await fetch(server.url)).text()
    await failure(fetch(server.url, { method: 'PUT', body: 'x' }))
    expect(puts).toBe(1)
  })

  test('a request that costs money is repeated only when it was certainly not processed', async () => {
    const sent = async (answer: () => Response | Promise<Response>) => {
      using server = faultServer()
      server.on('/', answer)
      const { fetch } = fetcher({})
      await fetch(server.url, { method: 'POST', body: 'x', costly: true, timeout: 200 }).catch(() => {})
      return server.seen.length
    }
    for (const status of [429, 503, 529])
      expect([status, await sent(() => new Response('', { status }))]).toEqual([status, 4])
    for (const status of [408, 500, 502, 504])
      expect([status, await sent(() => new Response('', { status }))]).toEqual([status, 1])
    expect(await sent(() => new Promise<never>(() => {}))).toBe(1)
    const { fetch, waits } = fetcher({})
    await failure(fetch('http://127.0.0.1:1/', { method: 'POST', body: 'x', costly: true }))
    expect(waits).toHaveLength(3)
  })

  test('nobody listens: not sent, and may be tried later', async () => {
    const server = await rawServer(() => {})
    const { url } = server
    server[Symbol.dispose]()
    const error = await failure(fetcher({ effect: 'once' }).fetch(url, { method: 'POST', body: 'x' }))
    expect(error).toMatchObject({ code: 'network', retryable: true, sent: 'no' })
  })

  test('a name without address: not sent', async () => {
    const lookup = async () => {
      throw new Error('ENOTFOUND')
    }
    const error = await failure(fetcher({ world: { lookup } }).fetch('http://nowhere.test/', { attempts: 1 }))
    expect(error).toMatchObject({ code: 'dns', retryable: true, sent: 'no' })
  })
})

describe('time and size', () => {
  test('slow headers end in a time-out that may have been sent', async () => {
    using server = faultServer()
    server.on('/', () => Bun.sleep(1_000).then(() => new Response('late')))
    const error = await failure(fetcher({}).fetch(server.url, { timeout: 60, attempts: 1 }))
    expect(error).toMatchObject({ code: 'timeout', retryable: true, sent: 'unknown' })
  })

  test('a body that falls silent ends too', async () => {
    using server = await rawServer(socket => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf'))
    const reply = await fetcher({}).fetch(server.url, { timeout: 80 })
    expect(await failure(reply.text())).toMatchObject({ code: 'timeout', retryable: true })
  })

  test('half a body and a reset is a failure, never a short text', async () => {
    using server = await rawServer(socket => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf')
      setTimeout(() => socket.resetAndDestroy(), 30)
    })
    const reply = await fetcher({}).fetch(server.url)
    expect(await failure(reply.text())).toMatchObject({ code: 'network', retryable: true, sent: 'unknown' })
  })

  test('a gzip bomb is stopped at the bound, without growing first', async () => {
    using server = faultServer()
    const bomb = Bun.gzipSync(new Uint8Array(256 * 1024 * 1024))
    server.on('/', () => new Response(bomb, { headers: { 'content-encoding': 'gzip' } }))
    const before = process.memoryUsage().rss
    const reply = await fetcher({}).fetch(server.url, { maxBytes: 1_000_000 })
    expect(await failure(reply.text())).toMatchObject({ code: 'too_large' })
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024)
  })

  test('a login page where JSON was expected is said to be one', async () => {
    using server = faultServer()
    server.on('/', () => new Response('<html>', { headers: { 'content-type': 'text/html' } }))
    const error = await failure((await fetcher({}).fetch(server.url)).json())
    expect(error.code).toBe('no_json')
    expect(error.hint).toContain('login page')
  })

  test('the readers of a reply agree', async () => {
    using server = faultServer()
    server.on('/', () => Response.json({ a: 'ü' }))
    const { fetch } = fetcher({})
    expect(await (await fetch(server.url)).json()).toEqual({ a: 'ü' })
    expect(await (await fetch(server.url)).text()).toBe('{"a":"ü"}')
    expect(Buffer.from(await (await fetch(server.url)).arrayBuffer()).toString()).toBe('{"a":"ü"}')
    expect(await (await (await fetch(server.url)).blob()).text()).toBe('{"a":"ü"}')
    expect(await Bun.readableStreamToText((await fetch(server.url)).body!)).toBe('{"a":"ü"}')
  })

  test.each(['before', 'while waiting for the reply', 'in the body'])('an abort %s ends it', async when => {
    using server = faultServer()
    server.on('/', () => Bun.sleep(300).then(() => new Response('late')))
    using half = await rawServer(socket => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf'))
    const controller = new AbortController()
    const { fetch } = fetcher({ signal: controller.signal })
    if (when === 'before') controller.abort()
    else setTimeout(() => controller.abort(), 50)
    const work = when === 'in the body' ? fetch(half.url).then(reply => reply.text()) : fetch(server.url)
    const error = await failure(work)
    expect(error).toMatchObject({ code: 'aborted', retryable: false, sent: when === 'before' ? 'no' : 'unknown' })
  })

  test('an abort ends a wait', async () => {
    using server = faultServer()
    server.on('/', () => new Response('', { status: 429, headers: { 'retry-after': '60' } }))
    const controller = new AbortController()
    setTimeout(() => controller.abort(), 50)
    const fetch = guardedFetch({
      settings: { base_url: server.url },
      network: { allow: [], literalOrigins: [] },
      effect: 'read',
      signal: controller.signal,
      log() {},
    })
    expect(await failure(fetch(server.url))).toMatchObject({ code: 'aborted' })
  })
})

describe('redirects', () => {
  const to = (location: string, status = 302) => new Response('', { status, headers: { location } })

  test('a loop ends after three', async () => {
    using server = faultServer()
    server.on('/', () => to('/'))
    expect(await failure(fetcher({}).fetch(server.url))).toMatchObject({ code: 'redirects', retryable: false })
    expect(server.seen).toHaveLength(4)
  })

  test('to a metadata address, a private address, another scheme or with credentials: refused', async () => {
    using server = faultServer()
    for (const target of [
      'http://169.254.169.254/latest/meta-data/',
      'http://10.0.0.1/',
      'http://[::ffff:10.0.0.1]/',
      'file:///etc/passwd',
      `${server.url.replace('//', '//user:pass@')}/`,
    ]) {
      server.on('/', () => to(target))
      expect(await failure(fetcher({}).fetch(server.url))).toMatchObject({ code: 'refused' })
    }
  })

  test('across origins every credential is dropped, within one it stays', async () => {
    using server = faultServer()
    using other = faultServer()
    server.on('/away', () => to(`${other.url}/`))
    server.on('/near', () => to('/here'))
    server.on('/here', () => new Response('ok'))
    other.on('/', () => new Response('ok'))
    const headers = {
      authorization: 'Bearer x',
      cookie: 'a=b',
      'dd-api-key': 'k',
      'x-api-key': 'k',
      accept: 'text/plain',
    }
    const { fetch } = fetcher({})
    await fetch(`${server.url}/away`, { headers })
    await fetch(`${server.url}/near`, { headers })
    const [arrived] = other.seen
    expect(arrived!.headers.accept).toBe('text/plain')
    for (const name of ['authorization', 'cookie', 'dd-api-key', 'x-api-key'])
      expect(arrived!.headers[name]).toBeUndefined()
    expect(server.seen.find(({ path }) => path === '/here')!.headers).toMatchObject(headers)
  })

  test.each([
    [301, 'GET', ''],
    [302, 'GET', ''],
    [303, 'GET', ''],
    [307, 'POST', 'payload'],
    [308, 'POST', 'payload'],
  ])('%d makes of a POST a %s', async (status, method, body) => {
    using server = faultServer()
    server.on('/', () => to('/next', status))
    server.on('/next', () => new Response('ok'))
    await fetcher({}).fetch(server.url, { method: 'POST', body: 'payload', follow: true })
    expect(server.seen[1]).toMatchObject({ method, body })
  })

  test('a write is not redirected unless asked', async () => {
    using server = faultServer()
    server.on('/', () => to('/next'))
    expect((await fetcher({}).fetch(server.url, { method: 'POST', body: 'x' })).status).toBe(302)
    expect(server.seen).toHaveLength(1)
  })

  test('of a write that was redirected into a refusal, the first hop was sent', async () => {
    using server = faultServer()
    server.on('/', () => to('http://10.0.0.1/', 307))
    const options: FetchOptions = { method: 'POST', body: 'x', follow: true }
    const error = await failure(fetcher({ effect: 'once' }).fetch(server.url, options))
    expect(error).toMatchObject({ code: 'refused', sent: 'unknown' })
  })
})

describe('the guard', () => {
  const deny = { network: { allow: [] } }

  test('loopback is refused, and the refusal prints the command that allows it', async () => {
    using server = faultServer()
    const error = await failure(fetcher(deny).fetch(server.url))
    expect(error).toMatchObject({ code: 'refused', sent: 'no', retryable: false })
    expect(error.message).toEndWith(`daemon.ts settings set network.allow 127.0.0.1`)
    // What is allowed already is not told, because others read the errors of runs.
    const more = await failure(fetcher({ network: { allow: ['wiki.inside'] } }).fetch(server.url))
    expect(more.message).toMatch(/settings set network.allow 127.0.0.1, with what .* settings list says of it now$/)
    expect(server.seen).toHaveLength(0)
  })

  test('the origin of a setting or of a literal URL passes; another port or scheme does not', async () => {
    using server = faultServer()
    using other = faultServer()
    for (const at of [server, other]) at.on('/', () => new Response('ok'))
    const bySetting = fetcher({ ...deny, settings: { channels: { ops: { webhook_url: `${server.url}/hook` } } } })
    const byTeam = fetcher({ network: { allow: [], literalOrigins: [server.url] } })
    for (const { fetch } of [bySetting, byTeam]) {
      expect((await fetch(server.url)).status).toBe(200)
      expect(await failure(fetch(other.url))).toMatchObject({ code: 'refused' })
      expect(await failure(fetch(server.url.replace('http:', 'https:')))).toMatchObject({ code: 'refused' })
    }
  })

  test.each([
    'http://169.254.169.254/',
    'http://metadata.google.internal/',
    'http://[fd00:ec2::254]/',
    'http://100.100.100.200/',
  ])('metadata is refused whatever is allowed: %s', async url => {
    const everything = fetcher({
      settings: { base_url: url },
      network: { allow: ['0.0.0.0/0', '::/0', new URL(url).hostname], literalOrigins: [new URL(url).origin] },
    })
    expect(await failure(everything.fetch(url))).toMatchObject({ code: 'refused', sent: 'no' })
  })

  test('a name that resolves to a metadata address is refused though a setting has it', async () => {
    const { fetch } = fetcher({
      settings: { base_url: 'http://wiki.test' },
      world: { lookup: async () => ['169.254.169.254'] },
    })
    expect(await failure(fetch('http://wiki.test/'))).toMatchObject({ code: 'refused' })
  })

  test('one private address among public ones is enough', async () => {
    const { fetch } = fetcher({ ...deny, world: { lookup: async () => ['93.184.215.14', '10.0.0.7'] } })
    expect((await failure(fetch('http://mixed.test/'))).message).toContain('10.0.0.7')
  })

  test('the connection goes to the vetted address with the name as host; names are asked once a try', async () => {
    using server = faultServer()
    server.on('/', request => new Response(request.headers.host))
    const asked: string[] = []
    const lookup = async (host: string) => {
      asked.push(host)
      return asked.length === 1 ? ['127.0.0.1'] : ['169.254.169.254']
    }
    const { port } = new URL(server.url)
    const { fetch } = fetcher({ network: { allow: ['wiki.test'] }, world: { lookup } })
    expect(await (await fetch(`http://wiki.test:${port}/`)).text()).toBe(`wiki.test:${port}`)
    expect(asked).toEqual(['wiki.test'])
  })

  test('the next address is tried when one refuses the connection', async () => {
    using server = faultServer()
    server.on('/', () => new Response('ok'))
    const { fetch } = fetcher({
      world: { lookup: async () => ['127.9.9.9', '127.0.0.1'] },
      network: { allow: ['127.0.0.0/8'] },
    })
    expect((await fetch(`http://both.test:${new URL(server.url).port}/`)).status).toBe(200)
  })

  test('other schemes, credentials in the URL and no URL at all are refused before anything is sent', async () => {
    for (const url of [
      'ftp://example.test/',
      'file:///etc/passwd',
      'http://user:pass@example.test/',
      'data:text/plain,x',
      'not a url',
    ]) {
      expect(await failure(fetcher({}).fetch(url))).toMatchObject({ sent: 'no', retryable: false })
    }
  })

  test('an agent cannot switch the guard off through options of the runtime', async () => {
    using server = faultServer()
    server.on('/', () => new Response('ok'))
    const options = { unix: '/var/run/docker.sock', proxy: 'http://127.0.0.1:1', redirect: 'follow' } as FetchOptions
    expect((await fetcher({}).fetch(server.url, options)).status).toBe(200)
  })

  describe('through a proxy', () => {
    const ADDRESSES: Record<string, string[]> = {
      'outside.test': ['93.184.215.14'],
      'metadata.test': ['169.254.169.254'],
    }
    const lookup = async (host: string) => {
      if (host.startsWith('unknown')) throw new Error('ENOTFOUND')
      return ADDRESSES[host] ?? ['10.0.0.8']
    }

    function behind(options: { allow?: string[]; settings?: object; noProxy?: string } = {}) {
      const proxy = faultServer()
      const seen: (string | undefined)[] = []
      proxy.on('/hello', request => {
        seen.push(request.headers.host)
        return new Response('via proxy')
      })
      const env = { HTTP_PROXY: proxy.url, NO_PROXY: options.noProxy ?? '' }
      const { allow = [], settings = {} } = options
      const { fetch } = fetcher({ network: { allow }, settings, world: { env, lookup } })
      const get = async (host: string) => (await fetch(`http://${host}/hello`, { attempts: 1 })).text()
      return { get, seen, [Symbol.dispose]: () => proxy[Symbol.dispose]() }
    }

    test('goes what is public, by its name', async () => {
      using at = behind()
      expect(await at.get('outside.test')).toBe('via proxy')
      expect(at.seen).toEqual(['outside.test'])
    })

    test.each([
      ['inside.test', 'refused'],
      ['localhost', 'refused'],
      ['metadata.test', 'refused'],
      ['metadata.google.internal', 'refused'],
      ['10.0.0.1', 'refused'],
      ['unknown.test', 'dns'],
    ])('%s does not go: %s', async (host, code) => {
      using at = behind()
      const error = await failure(at.get(host))
      expect(error).toMatchObject({ code, sent: 'no' })
      if (code === 'dns') expect(error.hint).toContain('settings set network.allow unknown.test')
      expect(at.seen).toEqual([])
    })

    test('goes what is allowed, also when it has no address here', async () => {
      using at = behind({ allow: ['inside.test', 'unknown.test'], settings: { base_url: 'http://unknown-too.test' } })
      for (const host of ['inside.test', 'unknown.test', 'unknown-too.test'])
        expect(await at.get(host)).toBe('via proxy')
      expect(at.seen).toHaveLength(3)
    })

    test('does not go what NO_PROXY names: it is reached at the vetted address', async () => {
      using server = faultServer()
      server.on('/hello', request => new Response(`direct to ${request.headers.host}`))
      using at = behind({ allow: ['direct.test', '127.0.0.1'], noProxy: 'direct.test,.corp' })
      const { port } = new URL(server.url)
      ADDRESSES['direct.test'] = ['127.0.0.1']
      expect(await at.get(`direct.test:${port}`)).toBe(`direct to direct.test:${port}`)
      expect(await failure(at.get('x.corp'))).toMatchObject({ code: 'refused' })
      expect(at.seen).toEqual([])
    })
  })

  describe('through a proxy that the variable for https names', () => {
    /** Whom the proxy was asked to connect to. It connects to nobody. */
    const asked: string[] = []
    const lookup = async (host: string) => {
      if (host === 'metadata.test') return ['169.254.169.254']
      return host === 'outside.test' ? ['93.184.215.14'] : ['10.0.0.8']
    }
    const get = async (name: string, url: string, allow: string[] = []) => {
      using proxy = await rawServer((socket, head) => {
        asked.push(head.split(' HTTP/')[0]!)
        socket.end('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n')
      })
      asked.length = 0
      const { fetch } = fetcher({ network: { allow }, world: { env: { [name]: proxy.url }, lookup } })
      return await fetch(url, { attempts: 1 }).then(
        ({ status }) => status,
        (error: AgentError) => error.code,
      )
    }

    const NAMES = ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy']
    test.each(NAMES)('%s of an environment: what it may not reach is not even asked of the proxy', async name => {
      for (const url of ['https://outside.test/x', 'https://inside.test/x', 'https://outside.test:8443/x']) {
        await get(name, url, ['inside.test'])
        const { host, port } = new URL(url)
        expect([url, asked]).toEqual([url, [`CONNECT ${port ? host : `${host}:443`}`]])
      }
      for (const host of [
        'inside.test',
        'metadata.test',
        'metadata.google.internal',
        'localhost',
        '10.0.0.1',
        '[::1]',
      ]) {
        expect([host, await get(name, `https://${host}/x`), asked]).toEqual([host, 'refused', []])
      }
      // What no setting can allow.
      const everything = ['metadata.test', 'metadata.google.internal', '0.0.0.0/0']
      for (const host of ['metadata.test', 'metadata.google.internal', '169.254.169.254'])
        expect([host, await get(name, `https://${host}/x`, everything), asked]).toEqual([host, 'refused', []])
    })

    test('ALL_PROXY takes http as well, HTTPS_PROXY does not', async () => {
      expect(await get('ALL_PROXY', 'http://outside.test/x')).toBe(502)
      expect(asked).toEqual(['GET http://outside.test/x'])
      expect(await get('ALL_PROXY', 'http://inside.test/x')).toBe('refused')
      expect(await get('HTTPS_PROXY', 'http://inside.test/x')).toBe('refused')
      expect(asked).toEqual([])
    })
  })

  test('no error shows path or query, where keys may stand', async () => {
    const server = await rawServer(() => {})
    server[Symbol.dispose]()
    const error = await failure(fetcher({}).fetch(`${server.url}/hook/SECRET?key=SECRET`, { attempts: 1 }))
    expect(error.message).not.toContain('SECRET')
  })
})

describe('credentials over http', () => {
  const lookup = async (host: string) => (host === 'here.test' ? ['127.0.0.1'] : ['192.0.2.7'])
  const network = { allow: ['127.0.0.1', '192.0.2.7'] }

  test.each(['authorization', 'cookie'])('in %s are never sent to another machine', async name => {
    const { fetch } = fetcher({ network, world: { lookup } })
    const error = await failure(fetch('http://away.test/x', { headers: { [name]: 'canary' } }))
    expect(error).toMatchObject({
      code: 'refused',
      sent: 'no',
      message: 'refused to send credentials to http://away.test unencrypted',
    })
    expect(error.hint).toContain('https://away.test')
  })

  test('are not given to a proxy either', async () => {
    const { fetch } = fetcher({ network, world: { lookup, env: { http_proxy: 'http://127.0.0.1:1' } } })
    expect(await failure(fetch('http://here.test/', { headers: { authorization: 'x' } }))).toMatchObject({
      code: 'refused',
    })
  })

  test('stay on this machine under any name', async () => {
    using server = faultServer()
    server.on('/', () => new Response('ok'))
    const { fetch } = fetcher({ network, world: { lookup } })
    const { port } = new URL(server.url)
    expect((await fetch(`http://here.test:${port}/`, { headers: { authorization: 'x' } })).status).toBe(200)
  })
})
