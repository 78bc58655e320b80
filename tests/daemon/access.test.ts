// The guard for callers from elsewhere: every credential against every rule, and what counts once.

import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Elysia } from 'elysia'
import { exportSPKI, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { Type } from 'typebox'
import { migrate, openDatabase, readMigrations } from '../../db/open.ts'
import { createAccess, strictFrom } from '../../lib/daemon/access/access.ts'
import { HubCredentials, storeEnrolment } from '../../lib/daemon/access/hub-credentials.ts'
import { daemonKit } from '../../lib/daemon/access/kit.ts'
import { createCredentials, type Remote } from '../../lib/daemon/access/remote-credentials.ts'
import { UsedTokens } from '../../lib/daemon/access/used-tokens.ts'
import { CadreError } from '../../lib/error.ts'
import { hookHostsFrom } from '../../lib/http/hook-hosts.ts'
import { root, STRICT } from '../../lib/http/root.ts'
import { createLog } from '../../lib/log/log.ts'
import { closed } from '../../lib/schema/schema.ts'
import type { DaemonAccess, Role } from '../../lib/wire/access.ts'
import type { Identity } from '../../lib/wire/calls/auth.ts'
import type { Level } from '../../lib/wire/grants.ts'
import { DECLARED } from '../support/declared-calls.ts'

const DAEMON = '0b5c0a52-6f0e-4a60-9d6b-6a2f7e1c0001'
const REALM = '0b5c0a52-6f0e-4a60-9d6b-6a2f7e1c0002'
const USER_TOKEN = `cadre_tok_${'u'.repeat(49)}`
const ELSEWHERE = '192.0.2.7'

const own = await generateKeyPair('EdDSA')
const old = await generateKeyPair('EdDSA')
const foreign = await generateKeyPair('EdDSA')

const READ: DaemonAccess = { local: 'open', remote: 'access' }
const EXECUTE: DaemonAccess = { local: 'open', remote: 'execute' }
const CANCEL: DaemonAccess = { local: 'open', remote: 'cancel' }
const NEVER: DaemonAccess = { local: 'open', remote: null }
const TOKEN: DaemonAccess = { local: 'token', remote: 'execute' }

const db = openDatabase(':memory:')
migrate(db, ':memory:', await readMigrations(join(import.meta.dir, '../../db/daemon/migrations')))
const used = new UsedTokens(db)

let now = Date.now()
let connected = true
let asked = 0
let whoami: Identity | CadreError = new CadreError('unavailable', 'away')

const remote: Remote = {
  daemonId: DAEMON,
  realmId: REALM,
  connected: () => connected,
  standing: () => ({ url: 'https://hub.example', paused: false, troubles: [] }),
  uses: () => true,
  keys: () => [],
  renewKeys: async () => {},
  async whoami() {
    asked++
    if (whoami instanceof CadreError) throw whoami
    return whoami
  },
  lists: () => false,
  stop: async () => {},
}
const keys = [
  { kid: 'own', pem: await exportSPKI(own.publicKey) },
  { kid: 'old', pem: await exportSPKI(old.publicKey), not_after: now - 1 },
]
const enrolled: Remote = { ...remote, keys: () => keys }

function guardOf(link: Remote | null = enrolled, strict = false) {
  return createAccess({
    localToken: 'local-token',
    strict,
    credentials: createCredentials(
      () => link,
      used,
      () => now,
      () => now,
    ),
  })
}

/** What the guard says: the caller, or the status of the refusal. */
async function ask(
  guard: ReturnType<typeof guardOf>,
  rule: DaemonAccess,
  { bearer = null, peer = ELSEWHERE, headers = {} }: { bearer?: string | null; peer?: string | null; headers?: object },
) {
  const request = new Request('http://127.0.0.1:7401/v1/x', { headers: { host: '127.0.0.1:7401', ...headers } })
  try {
    const access = guard(rule)
    const caller = await access.admit({ request, bearer, peer: () => peer })
    access.permit?.(caller)
    return caller.local ? 'local' : caller.name
  } catch (error) {
    return (error as CadreError).status
  }
}

type Verdict = string | number

interface TokenOptions {
  key?: CryptoKey
  header?: { alg?: string; kid?: string; typ?: string }
  claims?: JWTPayload
}

function dispatchToken({ key = own.privateKey, header = {}, claims = {} }: TokenOptions = {}): Promise<string> {
  const seconds = Math.floor(now / 1_000)
  return new SignJWT({
    iss: 'cadre-hub',
    aud: DAEMON,
    sub: 'ada',
    realm_id: REALM,
    action: 'access',
    jti: crypto.randomUUID(),
    exp: seconds + 300,
    ...claims,
  })
    .setProtectedHeader({ alg: 'EdDSA', kid: 'own', typ: 'dispatch+jwt', ...header })
    .sign(key)
}

describe('without a credential', () => {
  test('this machine is let in where no token is asked', async () => {
    const here = { peer: '127.0.0.1' }
    expect(await ask(guardOf(), READ, here)).toBe('local')
    expect(await ask(guardOf(null), NEVER, here)).toBe('local')
    expect(await ask(guardOf(), TOKEN, here)).toBe(401)
    expect(await ask(guardOf(enrolled, true), READ, here)).toBe(401)
  })

  test('elsewhere is 401, whatever its headers say', async () => {
    for (const headers of [{}, { 'x-forwarded-for': '127.0.0.1' }, { host: 'localhost' }]) {
      expect(await ask(guardOf(), READ, { headers })).toBe(401)
    }
    expect(await ask(guardOf(), READ, { peer: null })).toBe(401)
  })
})

test('the local token counts on this machine only', async () => {
  const bearer = 'local-token'
  expect(await ask(guardOf(enrolled, true), TOKEN, { bearer, peer: '::1' })).toBe('local')
  expect(await ask(guardOf(), READ, { bearer })).toBe(401)
})

describe('dispatch tokens', () => {
  test('allow the one action that they name', async () => {
    const allowed = { access: READ, execute: EXECUTE, cancel: CANCEL }
    for (const [action, own] of Object.entries(allowed)) {
      for (const rule of [READ, EXECUTE, CANCEL, NEVER]) {
        const bearer = await dispatchToken({ claims: { action } })
        expect([action, rule, await ask(guardOf(), rule, { bearer })]).toEqual([
          action,
          rule,
          rule === own ? 'ada' : 403,
        ])
      }
    }
  })

  test('on this machine a token that is present is what counts', async () => {
    const bearer = await dispatchToken()
    expect(await ask(guardOf(), READ, { bearer, peer: '127.0.0.1' })).toBe('ada')
    expect(await ask(guardOf(), EXECUTE, { bearer, peer: '127.0.0.1' })).toBe(403)
    expect(await ask(guardOf(), READ, { bearer: `${bearer}x`, peer: '127.0.0.1' })).toBe(401)
  })

  const seconds = Math.floor(now / 1_000)
  const refused: [string, TokenOptions][] = [
    ['signed by another key', { key: foreign.privateKey }],
    ['signed by a key that is over', { key: old.privateKey, header: { kid: 'old' } }],
    ['of an unknown key', { header: { kid: 'none' } }],
    ['of another type', { header: { typ: 'JWT' } }],
    ['expired', { claims: { exp: seconds - 31 } }],
    ['for another daemon', { claims: { aud: REALM } }],
    ['of another issuer', { claims: { iss: 'someone' } }],
    ['for another realm', { claims: { realm_id: DAEMON } }],
    ['for an unknown action', { claims: { action: 'admin' } }],
    ['without an end', { claims: { exp: undefined as never } }],
    ['without an id', { claims: { jti: undefined as never } }],
  ]
  for (const [what, options] of refused) {
    test(`${what}: 401`, async () => {
      expect(await ask(guardOf(), READ, { bearer: await dispatchToken(options) })).toBe(401)
    })
  }

  test('unsigned, or signed with the public key as a secret: 401', async () => {
    const [, payload] = (await dispatchToken()).split('.')
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const unsigned = `${encode({ alg: 'none', kid: 'own', typ: 'dispatch+jwt' })}.${payload}.`
    const secret = new TextEncoder().encode(keys[0]!.pem)
    const confused = await new SignJWT({ sub: 'ada', action: 'access', realm_id: REALM, jti: 'j' })
      .setProtectedHeader({ alg: 'HS256', kid: 'own', typ: 'dispatch+jwt' })
      .setIssuer('cadre-hub')
      .setAudience(DAEMON)
      .setExpirationTime('5m')
      .sign(secret)
    for (const bearer of [unsigned, confused]) expect(await ask(guardOf(), READ, { bearer })).toBe(401)
  })

  test('a clock that is 30 s off is tolerated', async () => {
    expect(await ask(guardOf(), READ, { bearer: await dispatchToken({ claims: { exp: seconds - 25 } }) })).toBe('ada')
  })

  test('that start work count once, and a refusal does not use them up', async () => {
    const guard = guardOf()
    const bearer = await dispatchToken({ claims: { action: 'execute' } })
    expect(await ask(guard, READ, { bearer })).toBe(403)
    expect(await ask(guard, EXECUTE, { bearer })).toBe('ada')
    expect(await ask(guard, EXECUTE, { bearer })).toBe(401)
    const reader = await dispatchToken()
    expect([await ask(guard, READ, { bearer: reader }), await ask(guard, READ, { bearer: reader })]).toEqual([
      'ada',
      'ada',
    ])
  })

  test('a wrong body is told before what is not allowed, and uses nothing up', async () => {
    const body = closed({ run_id: Type.String() })
    const api = new Elysia(STRICT)
      .use(root(createLog({ write: () => {} })))
      .use(daemonKit(guardOf()))
      .post('/v1/start', ({ caller }) => ({ by: caller.name }), { access: EXECUTE, body })
      .post('/v1/never', () => ({}), { access: NEVER, body })
    const bearer = await dispatchToken({ claims: { action: 'execute' } })
    // Without a socket a request comes from elsewhere.
    const post = async (path: string, content: object, token = bearer) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const request = new Request(`http://localhost${path}`, { method: 'POST', headers, body: JSON.stringify(content) })
      return (await api.handle(request)).status
    }
    expect(await post('/v1/never', { run: 'r' })).toBe(400)
    expect(await post('/v1/never', { run_id: 'r' })).toBe(403)
    expect(await post('/v1/start', { run: 'r' })).toBe(400)
    expect(await post('/v1/start', { run: 'r' }, `${bearer}x`)).toBe(401)
    expect(await post('/v1/start', { run_id: 'r' })).toBe(200)
    expect(await post('/v1/start', { run_id: 'r' })).toBe(401)
  })

  test('wait while the hub is away, a bad one does not', async () => {
    connected = false
    const bearer = await dispatchToken()
    expect(await ask(guardOf(), NEVER, { bearer })).toBe(503)
    expect(await ask(guardOf(), NEVER, { bearer: await dispatchToken({ key: foreign.privateKey }) })).toBe(401)
    expect(await ask(guardOf(), READ, { bearer: USER_TOKEN })).toBe(503)
    expect(await ask(guardOf(), READ, { bearer: 'cadre_tok_short' })).toBe(401)
    connected = true
    expect(await ask(guardOf(null), READ, { bearer })).toBe(401)
  })

  test('a configured key is trusted whatever the kid says', async () => {
    const pinned: Remote = { ...remote, keys: () => [{ kid: '', pem: keys[0]!.pem }] }
    expect(await ask(guardOf(pinned), READ, { bearer: await dispatchToken({ header: { kid: 'other' } }) })).toBe('ada')
  })
})

describe('user tokens', () => {
  const person = (realm_role: Role<'realm'> | null, runs: Level[]): Identity => ({
    type: 'user',
    kind: 'durable',
    user: { id: 1, username: 'ben' },
    permissions: { domains: {}, access: { runs } },
    realm_ids: [],
    expires_at: null,
    realm_role,
  })
  const table: [what: string, reply: typeof whoami, read: Verdict, execute: Verdict, cancel: Verdict][] = [
    ['an operator with runs write', person('operator', ['write']), 'ben', 'ben', 'ben'],
    ['an admin with runs admin', person('admin', ['admin']), 'ben', 'ben', 'ben'],
    ['an operator with runs read', person('operator', ['read']), 'ben', 403, 403],
    ['a member with runs write', person('member', ['write']), 'ben', 403, 403],
    ['a member without runs', person('member', []), 403, 403, 403],
    ['a user outside the realm', person(null, ['admin']), 401, 401, 401],
    ['a token the hub does not know', new CadreError('unauthorized', 'no'), 401, 401, 401],
    ['a hub that does not answer', new CadreError('unavailable', 'away'), 503, 503, 503],
  ]
  for (const [what, reply, read, execute, cancel] of table) {
    test(`${what}`, async () => {
      whoami = reply
      const guard = guardOf()
      const verdicts: Verdict[] = []
      for (const rule of [READ, EXECUTE, CANCEL]) verdicts.push(await ask(guard, rule, { bearer: USER_TOKEN }))
      expect(verdicts).toEqual([read, execute, cancel])
    })
  }

  test('are asked about once a minute', async () => {
    whoami = person('operator', ['write'])
    const guard = guardOf()
    asked = 0
    for (let call = 0; call < 3; call++) expect(await ask(guard, READ, { bearer: USER_TOKEN })).toBe('ben')
    expect(asked).toBe(1)
    whoami = new CadreError('unauthorized', 'revoked')
    now += 60_001
    expect(await ask(guard, READ, { bearer: USER_TOKEN })).toBe(401)
  })

  test('are trusted within that minute, but not past their expiry', async () => {
    whoami = { ...person('operator', ['write']), expires_at: now + 30_000 }
    const guard = guardOf()
    expect(await ask(guard, READ, { bearer: USER_TOKEN })).toBe('ben')
    whoami = new CadreError('unauthorized', 'expired')
    now += 29_999
    expect(await ask(guard, READ, { bearer: USER_TOKEN })).toBe('ben')
    now += 1
    expect(await ask(guard, READ, { bearer: USER_TOKEN })).toBe(401)
  })
})

describe('for calls that last', () => {
  const credentials = () =>
    createCredentials(
      () => enrolled,
      used,
      () => now,
      () => now,
    )

  test('a hub that does not answer changes nothing, until the user token expires', async () => {
    const { check, again } = credentials()
    whoami = {
      type: 'user',
      kind: 'durable',
      user: { id: 1, username: 'ben' },
      permissions: { domains: {}, access: { runs: ['read'] } },
      realm_ids: [],
      realm_role: 'member',
      expires_at: now + 3_600_000,
    }
    expect((await check(USER_TOKEN)).name).toBe('ben')
    whoami = new CadreError('unavailable', 'away')
    now += 3_599_999
    expect(await again(USER_TOKEN)).toBeNull()
    connected = false
    expect(await again(USER_TOKEN)).toBeNull()
    now += 1
    await expect(again(USER_TOKEN)).rejects.toMatchObject({ code: 'unauthorized' })
    connected = true
    await expect(again(USER_TOKEN)).rejects.toMatchObject({ code: 'unauthorized' })
  })

  test('a dispatch token ends at its expiry, without the tolerance that a call has', async () => {
    const { check, again } = credentials()
    const bearer = await dispatchToken()
    const start = now
    now = (Math.floor(start / 1_000) + 300) * 1_000 - 1
    expect((await again(bearer))?.name).toBe('ada')
    now += 1
    await expect(again(bearer)).rejects.toMatchObject({ code: 'unauthorized' })
    expect((await check(bearer)).name).toBe('ada')
  })
})

describe('what the calls of a daemon declare', () => {
  type Row = [local: DaemonAccess['local'], remote: DaemonAccess['remote']]

  /**
   * Written by hand from sections 6 and 7 of the decisions, which say: of remote callers `access` reads workspaces and
   * runs, `execute` starts, resumes and decides, `cancel` cancels, and no other call is remote; of callers on this
   * machine only settings, decisions of reviews and the audit log need the local token.
   */
  const DECIDED: Readonly<Record<string, Row>> = {
    '/v1/runs/start': ['open', 'execute'],
    '/v1/runs/resume': ['open', 'execute'],
    '/v1/reviews/decide': ['token', 'execute'],
    '/v1/runs/cancel': ['open', 'cancel'],
    '/v1/runs/list': ['open', 'access'],
    '/v1/runs/teams': ['open', 'access'],
    '/v1/runs/stats': ['open', 'access'],
    '/v1/teams/history': ['open', 'access'],
    '/v1/runs/get': ['open', 'access'],
    '/v1/runs/tree': ['open', 'access'],
    '/v1/runs/phases': ['open', 'access'],
    '/v1/runs/why': ['open', 'access'],
    '/v1/runs/logs': ['open', 'access'],
    '/v1/runs/stream': ['open', 'access'],
    '/v1/artifacts/list': ['open', 'access'],
    '/v1/artifacts/get': ['open', 'access'],
    '/v1/reviews/list': ['open', 'access'],
    '/v1/workspaces/get': ['open', 'access'],
    '/v1/workspaces/add': ['open', null],
    '/v1/workspaces/remove': ['open', null],
    '/v1/runs/delete': ['open', null],
    '/v1/agents/list': ['open', null],
    '/v1/teams/validate': ['open', null],
    '/v1/teams/plan': ['open', null],
    '/v1/teams/files': ['token', null],
    '/v1/teams/save': ['token', null],
    '/v1/settings/get': ['token', null],
    '/v1/settings/set': ['token', null],
    '/v1/settings/list': ['token', null],
    '/v1/audit/list': ['token', null],
    '/v1/audit/export': ['token', null],
  }

  /** Calls whose access the decisions do not name. */
  const BEYOND: Readonly<Record<string, Row>> = {
    // They read runs.
    '/v1/runs/history': ['open', 'access'],
    '/v1/runs/log': ['open', 'access'],
    // They read what started runs, and what did not.
    '/v1/triggers/get': ['open', 'access'],
    '/v1/triggers/list': ['open', 'access'],
    '/v1/triggers/preview': ['open', 'access'],
    '/v1/triggers/firings': ['open', 'access'],
    // A trigger runs commands of the machine long after the call: the owner alone adds and changes them.
    '/v1/triggers/add': ['token', null],
    '/v1/triggers/update': ['token', null],
    '/v1/triggers/remove': ['token', null],
    '/v1/triggers/enable': ['token', null],
    '/v1/triggers/disable': ['token', null],
    '/v1/triggers/pause': ['token', null],
    '/v1/triggers/resume': ['token', null],
    '/v1/triggers/run_now': ['token', null],
    '/v1/triggers/refire': ['token', null],
    '/v1/triggers/backfill': ['token', null],
    '/metrics': ['open', 'access'],
    '/v1/daemon/hub': ['open', 'access'],
    // The text of a team belongs to the owner of the machine, and so do the credentials that the doctor calls with.
    '/v1/runs/team': ['open', null],
    '/schema/team.json': ['open', null],
    '/v1/agents/doctor': ['token', null],
    // It ends the process, which another user of the machine must not do.
    '/v1/daemon/drain': ['token', null],
  }

  test('is what was decided', () => {
    const declared = DECLARED.flatMap(({ call: { path, daemon } }) =>
      daemon ? [[path, [daemon.local, daemon.remote]] as const] : [],
    )
    expect(new Map(declared)).toEqual(new Map(Object.entries({ ...DECIDED, ...BEYOND })))
  })
})

test('CADRE_LOCAL_AUTH is strict, open or empty, and nothing else', () => {
  expect([undefined, '', 'open', 'strict'].map(strictFrom)).toEqual([false, false, false, true])
  expect(() => strictFrom('stirct')).toThrow('expected strict or nothing, got stirct')
})

test('CADRE_HOOK_HOSTS is names of hosts', () => {
  expect(hookHostsFrom(' Hooks.example.com, a.b ,')).toEqual(['hooks.example.com', 'a.b'])
  expect([undefined, ''].map(hookHostsFrom)).toEqual([[], []])
  for (const wrong of ['https://a.b', 'a.b:80', '*.b']) expect(() => hookHostsFrom(wrong)).toThrow(wrong)
})

test.each([
  ['https://a.example', ['hub.url', 'hub.realm_token']],
  ['https://b.example', ['hub.realm_token', 'hub.url', 'hub.realm_token']],
])('enrolled at %s, a home never has the token of one hub beside the address of another', async (url, order) => {
  const settings = new Map<string, string | null>([
    ['hub.url', 'https://a.example/'],
    ['hub.realm_token', 'cadre_dt_a'],
  ])
  const stored: string[] = []
  const store = async (key: string, value: string | null) => {
    settings.set(key, value)
    stored.push(key)
    if (settings.get('hub.url') === 'https://b.example') expect(settings.get('hub.realm_token')).not.toBe('cadre_dt_a')
  }
  await storeEnrolment(
    new HubCredentials({ value: key => settings.get(key) ?? undefined }, {}),
    store,
    url,
    'cadre_dt_b',
  )
  expect(settings.get('hub.realm_token')).toBe('cadre_dt_b')
  expect(stored).toEqual(order)
})
