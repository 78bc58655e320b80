// What the pages of the hub call: `/web/session` signs in and out, and `/web/v1/…` is answered as `/v1/…` is, with the
// same checks and errors. These routes are the only ones that read the cookie of a session. They pass the request on
// with its token as Bearer, so `/v1` knows nothing of cookies. The cookie can be read by no script, and is sent neither
// to other paths nor along with a request that another site has caused.

import { type AnyElysia, Elysia } from 'elysia'
import { CadreError } from '../../error.ts'
import { type Access, admission } from '../../http/admission.ts'
import { httpKit } from '../../http/kit.ts'
import { nested } from '../../http/nested.ts'
import { isSessionForm } from '../../secrets/secret-form.ts'
import { Whoami } from '../../wire/calls/auth.ts'
import { CreateSession, DeleteSession } from '../../wire/calls/session.ts'
import { hostOf, lastOf } from '../access/forwarded.ts'
import type { Hub } from '../core/hub.ts'
import { SESSION_MS } from '../core/last-seen.ts'

const COOKIE = 'cadre_session'
/** Browsers take a cookie of such a name with TLS only, for every path, and from no other host of the domain. */
const SECURE_COOKIE = `__Host-${COOKIE}`

/** No reply is kept, framed, or taken for anything but data. */
const GUARDS = {
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}
/** Replies that may take any time. */
const STREAMS = new Set(['text/event-stream', 'application/x-ndjson'])
const POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"

/** The last plugin of the app, whose other routes answer what is passed on. */
export const webSession =
  (hub: Hub) =>
  <App extends AnyElysia>(app: App): App => {
    const { trustProxy } = hub

    const fromPage: Access<null> = {
      rule: 'pages of this hub; /web/v1 takes the cookie of a session, and then what /v1 asks of its token',
      unread: true,
      admit({ request }) {
        refuseForeign(request, trustProxy)
        return null
      },
    }

    /** The reply of the hub's own route `path` to what `request` asks. */
    const pass = (request: Request, path: string, method?: string): Promise<Response> => {
      const headers = new Headers(request.headers)
      headers.delete('cookie')
      headers.delete('authorization')
      const token = path === CreateSession.path ? null : session(request)
      if (token !== null) headers.set('authorization', `Bearer ${token}`)
      return app.handle(nested(request, new URL(path, request.url), headers, method))
    }

    const session = (request: Request) => sessionOf(request, isSecure(request, trustProxy))

    /** What sets the cookie. Cookies of the same name that another host of the domain has set end with it. */
    const cookies = (request: Request, value: string, seconds: number): string[] => {
      const rest = `HttpOnly; SameSite=Strict; Max-Age=${seconds}`
      if (isSecure(request, trustProxy)) return [`${SECURE_COOKIE}=${value}; Path=/; ${rest}; Secure`]
      const others = cookiesOf(request, COOKIE).length > 1 ? endOfOthers(request) : []
      return [...others, `${COOKIE}=${value}; Path=/web; ${rest}`]
    }

    const routes = new Elysia({ name: 'web-session', prefix: '/web' })
      .use(httpKit())
      .macro({ page: (_: true) => admission(fromPage) })
      .get(
        '/session',
        async ({ request }) => {
          const reply = session(request) === null ? null : await pass(request, Whoami.path, 'POST')
          if (reply !== null && reply.status !== 401 && !reply.ok) return guarded(reply)
          const user = reply?.ok ? (await dataOf(reply)).user : null
          return guarded(Response.json({ ok: true, data: { user } }))
        },
        { page: true, detail: { summary: 'Who is signed in', hide: true } },
      )
      .post(
        '/session',
        async ({ request }) => {
          const reply = await pass(request, CreateSession.path)
          if (!reply.ok) return guarded(reply)
          const { token, ...data } = await dataOf(reply)
          const seconds = Math.floor(SESSION_MS / 1_000)
          return guarded(Response.json({ ok: true, data }), cookies(request, String(token), seconds))
        },
        { page: true, detail: { summary: 'Sign in', hide: true } },
      )
      .delete(
        '/session',
        async ({ request }) => {
          const reply = session(request) === null ? null : await pass(request, DeleteSession.path, 'POST')
          // A session that has ended before needs no end.
          const failed = reply !== null && reply.status !== 401 && !reply.ok
          // Whatever has failed, this browser is signed out.
          return guarded(failed ? reply : Response.json({ ok: true, data: null }), cookies(request, '', 0))
        },
        { page: true, detail: { summary: 'Sign out', hide: true } },
      )
      .get('/v1/*', ({ request, server }) => passOn(request, server), {
        page: true,
        detail: { summary: 'The API for the pages', hide: true },
      })
      .post('/v1/*', ({ request, server }) => passOn(request, server), {
        page: true,
        detail: { summary: 'The API for the pages', hide: true },
      })

    async function passOn(request: Request, server: AnyElysia['server']): Promise<Response> {
      const { pathname, search } = new URL(request.url)
      // Their replies would show the page a token, which it must not have.
      if (pathname.startsWith('/web/v1/session/')) throw new CadreError('not_found', 'pages sign in at /web/session')
      const reply = await pass(request, pathname.slice('/web'.length) + search)
      if (STREAMS.has(reply.headers.get('content-type') ?? '')) server?.timeout(request, 0)
      return guarded(reply)
    }

    app.use(routes)
    return app
  }

/** The data of a reply of ours. */
async function dataOf(reply: Response): Promise<Record<string, unknown>> {
  return ((await reply.json()) as { data: Record<string, unknown> }).data
}

/**
 * The token of the session in the cookie; other tokens do not count. Of two sessions without TLS another host of the
 * domain has set one, so neither counts.
 */
function sessionOf(request: Request, secure: boolean): string | null {
  const found = cookiesOf(request, secure ? SECURE_COOKIE : COOKIE).filter(isSessionForm)
  return found.length === 1 ? found[0]! : null
}

function cookiesOf({ headers }: Request, name: string): string[] {
  const pairs = (headers.get('cookie') ?? '').split(';').map(pair => pair.trim())
  return pairs.filter(pair => pair.startsWith(`${name}=`)).map(pair => pair.slice(name.length + 1))
}

/** Ends cookies that this host and those above it can have set for the paths of `/web`, except for the hub's own. */
function endOfOthers(request: Request): string[] {
  const host = new URL(request.url).hostname
  const labels = host.split('.')
  const domains = labels.map((_, at) => `; Domain=${labels.slice(at).join('.')}`)
  const paths = ['/', '/web', '/web/', '/web/session', '/web/v1', '/web/v1/']
  return ['', ...domains]
    .flatMap(domain => paths.map(path => ({ domain, path })))
    .filter(({ domain, path }) => domain !== '' || path !== '/web')
    .map(({ domain, path }) => `${COOKIE}=; Path=${path}; Max-Age=0${domain}`)
}

/**
 * Throws 403 for what a page of another origin has sent, and 415 for what a form could send. Browsers say from where a
 * request comes in `Sec-Fetch-Site`, or, where the hub is reached without TLS, in `Origin`.
 */
function refuseForeign({ method, headers }: Request, trustProxy: boolean): void {
  const site = headers.get('sec-fetch-site')
  const origin = headers.get('origin')
  const foreign = site === null ? origin !== null && !isOwn(origin, headers, trustProxy) : site !== 'same-origin'
  if (foreign) throw new CadreError('forbidden', 'only pages of this hub may call /web; use /v1 with a token')
  const type = headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase()
  if (method === 'POST' && type !== 'application/json') {
    throw new CadreError('unsupported_media_type', `expected content-type application/json, got ${type ?? 'none'}`)
  }
}

/** The scheme is not compared, because a proxy that ends TLS need not pass it on. */
function isOwn(origin: string, headers: Headers, trustProxy: boolean): boolean {
  return URL.parse(origin)?.host === hostOf({ trustProxy }, headers)
}

/** Whether the browser has reached the hub with TLS, so that the cookie must not travel without. */
function isSecure({ url, headers }: Request, trustProxy: boolean): boolean {
  if (trustProxy) return lastOf(headers.get('x-forwarded-proto')) !== 'http'
  return url.startsWith('https:')
}

/** The reply with what keeps it from other pages. A download has a policy of its own. */
function guarded(reply: Response, cookies: string[] = []): Response {
  const headers = new Headers(reply.headers)
  for (const [name, value] of Object.entries(GUARDS)) headers.set(name, value)
  if (!headers.has('content-security-policy')) headers.set('content-security-policy', POLICY)
  for (const cookie of cookies) headers.append('set-cookie', cookie)
  return new Response(reply.body, { status: reply.status, headers })
}
