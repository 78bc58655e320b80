// Attacks by forged dispatch tokens on a daemon with a real hub. Wherever somebody could have the key, the token is
// signed with the hub's own one, so that only what the case names is wrong with it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { eq } from 'drizzle-orm'
import type { Json, JsonObject } from '../../../lib/json.ts'
import { type RunningDaemon, spawnDaemon } from '../../support/daemon.ts'
import { startTestHub, type TestHub } from '../../support/hub.ts'

/** The number of forged tokens that are tried at least. */
const AT_LEAST = 34

let hub: TestHub
let daemon: RunningDaemon
let daemonId: string
let own: { kid: string; pem: string; key: KeyObject }
let other: { kid: string; key: KeyObject }
/** A token that the hub minted. */
let genuine: string

beforeAll(async () => {
  hub = await startTestHub()
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const { id } = await hub.ok(hub.admin, 'orgs/create', { slug: 'another', display_name: 'Another' })
  const [ours, theirs] = await Promise.all([keyOf(1), keyOf(id)])
  own = ours
  other = theirs
  daemon = await spawnDaemon({ env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token } })
  const { daemons } = await hub.ok(hub.admin, 'daemons/list')
  daemonId = daemons[0].id
  genuine = await mint('access')
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
})

/** The key pair with which the hub signs for an org. Without `CADRE_HUB_KEY` it lies open in the database. */
async function keyOf(org: number) {
  const { dispatchKeys } = hub.store
  const [row] = await hub.store.db.select().from(dispatchKeys).where(eq(dispatchKeys.org_id, org))
  return { kid: row!.kid, pem: row!.public_pem, key: createPrivateKey(row!.private_key) }
}

const mint = async (action: string): Promise<string> =>
  (await hub.ok(hub.admin, 'dispatch/tokens/mint', { daemon_id: daemonId, action })).token

const encode = (value: Json): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = (part: string): JsonObject => JSON.parse(Buffer.from(part, 'base64url').toString())
const now = () => Math.floor(Date.now() / 1_000)

/** A value of undefined takes a field away. */
type Change = Record<string, Json | undefined>
type Sign = (text: string) => Buffer | string

const ed25519 =
  (key: KeyObject): Sign =>
  text =>
    sign(null, Buffer.from(text), key)
const hmac =
  (hash: string, secret: string | Buffer): Sign =>
  text =>
    createHmac(hash, secret).update(text).digest()

/** What the hub would sign, with changes. By default it is signed with the hub's key. */
function token(header: Change, claims: Change = {}, by: Sign = ed25519(own.key)): string {
  const head = { alg: 'EdDSA', kid: own.kid, typ: 'dispatch+jwt', ...header }
  const body = {
    iss: 'cadre-hub',
    aud: daemonId,
    sub: 'admin',
    realm_id: hub.realm,
    action: 'access',
    jti: crypto.randomUUID(),
    exp: now() + 300,
    ...claims,
  }
  const text = `${encode(head as JsonObject)}.${encode(body as JsonObject)}`
  return `${text}.${Buffer.from(by(text)).toString('base64url')}`
}

const stranger = generateKeyPairSync('ed25519')
const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 })
const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const foreign = ed25519(stranger.privateKey)
const withRsa: Sign = text => sign('sha256', Buffer.from(text), rsa.privateKey)
const withCurve: Sign = text => sign('sha256', Buffer.from(text), { key: curve.privateKey, dsaEncoding: 'ieee-p1363' })
const strangerJwk = { ...stranger.publicKey.export({ format: 'jwk' }) } as JsonObject
const parts = () => genuine.split('.') as [string, string, string]
const spki = () => createPublicKey(own.pem).export({ type: 'spki', format: 'der' })

const forged: [what: string, make: () => string | Promise<string>][] = [
  // No signature, or one of another algorithm
  ['alg none', () => token({ alg: 'none' }, {}, () => '')],
  ['alg None', () => token({ alg: 'None' }, {}, () => '')],
  ['alg NONE', () => token({ alg: 'NONE' }, {}, () => '')],
  ['alg none, with a signature', () => token({ alg: 'none' })],
  ['no alg', () => token({ alg: undefined })],
  ['alg that is an empty text', () => token({ alg: '' })],
  ['alg that is a list', () => token({ alg: ['EdDSA'] })],
  ['HS256 with the public key as PEM', () => token({ alg: 'HS256' }, {}, hmac('sha256', own.pem))],
  ['HS256 with the public key as DER', () => token({ alg: 'HS256' }, {}, hmac('sha256', spki()))],
  ['HS256 with the bytes of the public key', () => token({ alg: 'HS256' }, {}, hmac('sha256', spki().subarray(-32)))],
  ['HS512 with the public key as PEM', () => token({ alg: 'HS512' }, {}, hmac('sha512', own.pem))],
  ['HS256 with an empty secret', () => token({ alg: 'HS256' }, {}, hmac('sha256', ''))],
  ['RS256 by a key of their own', () => token({ alg: 'RS256' }, {}, withRsa)],
  ['ES256 by a key of their own', () => token({ alg: 'ES256' }, {}, withCurve)],
  ['ES256 of zeros only', () => token({ alg: 'ES256' }, {}, () => Buffer.alloc(64))],
  ['an RSA signature that says EdDSA', () => token({}, {}, withRsa)],
  // A signature of something else
  ['a key of their own', () => token({}, {}, foreign)],
  ['a signature of zeros', () => token({}, {}, () => Buffer.alloc(64))],
  ['no signature', () => token({}, {}, () => '')],
  ['half a signature', () => `${parts()[0]}.${parts()[1]}.${parts()[2].slice(0, 43)}`],
  ['more than a signature', () => `${parts()[0]}.${parts()[1]}.${parts()[2]}AAAA`],
  ['the signature of another token', async () => `${parts()[0]}.${parts()[1]}.${(await mint('access')).split('.')[2]}`],
  ['a changed name', () => `${parts()[0]}.${encode({ ...decode(parts()[1]), sub: 'eve' })}.${parts()[2]}`],
  ['a changed header', () => `${encode({ ...decode(parts()[0]), x: 1 })}.${parts()[1]}.${parts()[2]}`],
  ['an older end', () => `${parts()[0]}.${encode({ ...decode(parts()[1]), exp: now() + 9_999 })}.${parts()[2]}`],
  // Which key
  ['a kid that is a path', () => token({ kid: '../../../../dev/null' }, {}, hmac('sha256', ''))],
  ['a kid that is an address', () => token({ kid: `${hub.url}/key.pem` }, {}, foreign)],
  ['a kid that is a piece of SQL', () => token({ kid: `x' UNION SELECT '${own.kid}` }, {}, foreign)],
  ['a kid that is a name of every object', () => token({ kid: '__proto__' }, {}, foreign)],
  ['a kid that is a list', () => token({ kid: [own.kid] })],
  ['no kid', () => token({ kid: undefined })],
  ['an empty kid', () => token({ kid: '' })],
  ['the key of another org', () => token({ kid: other.kid }, {}, ed25519(other.key))],
  ['the key of another org under the kid of this one', () => token({}, {}, ed25519(other.key))],
  ['a key in the header (jwk)', () => token({ jwk: strangerJwk }, {}, foreign)],
  ['the address of a key (jku)', () => token({ jku: 'http://127.0.0.1:1/keys' }, {}, foreign)],
  ['the address of a certificate (x5u)', () => token({ x5u: 'http://127.0.0.1:1/cert' }, {}, foreign)],
  ['a certificate (x5c)', () => token({ x5c: [spki().toString('base64')] }, {}, foreign)],
  // What it says
  ['typ JWT', () => token({ typ: 'JWT' })],
  ['no typ', () => token({ typ: undefined })],
  ['expired', () => token({}, { exp: now() - 31 })],
  ['no end', () => token({}, { exp: undefined })],
  ['an end that is a text', () => token({}, { exp: String(now() + 300) })],
  ['an end that is null', () => token({}, { exp: null })],
  ['valid from tomorrow', () => token({}, { nbf: now() + 86_400 })],
  ['for another daemon', () => token({}, { aud: crypto.randomUUID() })],
  ['for nobody', () => token({}, { aud: undefined })],
  ['for a list of others', () => token({}, { aud: [crypto.randomUUID(), ''] })],
  ['of another issuer', () => token({}, { iss: 'cadre-hub.example' })],
  ['of no issuer', () => token({}, { iss: undefined })],
  ['of no person', () => token({}, { sub: undefined })],
  ['of a person who is a number', () => token({}, { sub: 1 })],
  ['for another realm', () => token({}, { realm_id: crypto.randomUUID() })],
  ['for no realm', () => token({}, { realm_id: undefined })],
  ['an unknown action', () => token({}, { action: 'admin' })],
  ['a list of actions', () => token({}, { action: ['access', 'execute'] })],
  ['no action', () => token({}, { action: undefined })],
  ['no id', () => token({}, { jti: undefined })],
  ['an id that is no text', () => token({}, { jti: 7 })],
  ['a run that is a list', () => token({}, { run_id: [] })],
  ['a run that is null', () => token({}, { run_id: null })],
  ['crit of something unknown', () => token({ crit: ['urn:none'], 'urn:none': true })],
  ['a payload that is not encoded (b64)', () => token({ crit: ['b64'], b64: false })],
  ['a token in a token', () => signedText(genuine)],
  // Its form
  ['no payload', () => `${parts()[0]}..${parts()[2]}`],
  ['two parts', () => parts().slice(0, 2).join('.')],
  ['four parts', () => `${genuine}.${parts()[2]}`],
  ['five parts, as of an encrypted one', () => `${parts()[0]}.a.b.c.d`],
  ['padding', () => `${genuine}==`],
  ['padding of the header', () => `${parts()[0]}=.${parts()[1]}.${parts()[2]}`],
  ['the other alphabet', () => genuineWith(/[-_]/, text => text.replaceAll('-', '+').replaceAll('_', '/'))],
  ['a space inside', () => `${parts()[0]}.${parts()[1]}.${parts()[2].slice(0, 20)} ${parts()[2].slice(20)}`],
  ['letters beyond ASCII', () => `${genuine}\u00e9`],
  ['the parts as JSON', () => JSON.stringify({ protected: parts()[0], payload: parts()[1], signature: parts()[2] })],
  ['a header that is no JSON', () => `${Buffer.from('{').toString('base64url')}.${parts()[1]}.${parts()[2]}`],
  ['a payload that is a list', () => signedText('[]')],
  ['a payload that is no JSON', () => signedText('{"action":"access"')],
  ['two tokens', () => `${genuine}, ${genuine}`],
]

/** A token of the hub whose signature has what `form` finds, changed by `change`. */
async function genuineWith(form: RegExp, change: (text: string) => string): Promise<string> {
  for (;;) {
    const minted = await mint('access')
    const [head, body, signature] = minted.split('.') as [string, string, string]
    if (form.test(signature)) return `${head}.${body}.${change(signature)}`
  }
}

/** Any payload, signed with the hub's key. */
function signedText(payload: string): string {
  const text = `${parts()[0]}.${Buffer.from(payload).toString('base64url')}`
  return `${text}.${Buffer.from(ed25519(own.key)(text)).toString('base64url')}`
}

const read = (bearer: string) => daemon.post('/v1/runs/list', {}, { authorization: `Bearer ${bearer}` })

test('what the hub minted is let in, and so is what this file signs as the hub does', async () => {
  expect((await read(genuine)).status).toBe(200)
  expect((await read(token({}))).status).toBe(200)
  expect((await read(token({}, { exp: now() - 25 }))).status).toBe(200)
})

test(`there are at least ${AT_LEAST} of them`, () => {
  expect(new Set(forged.map(([what]) => what)).size).toBe(forged.length)
  expect(forged.length).toBeGreaterThanOrEqual(AT_LEAST)
})

test.each(forged)('%s: 401', async (_, make) => {
  const { status, body } = await read(await make())
  expect([status, body.error?.code]).toEqual([401, 'unauthorized'])
})

test('the id of a token that was used admits no other token that starts work', async () => {
  const start = (bearer: string) =>
    daemon.post('/v1/runs/resume', { run_id: 'none' }, { authorization: `Bearer ${bearer}` })
  const jti = crypto.randomUUID()
  expect((await start(token({}, { action: 'execute', jti }))).status).toBe(404)
  expect((await start(token({}, { action: 'execute', jti, exp: now() + 290 }))).status).toBe(401)
  expect((await start(token({}, { action: 'execute', jti, sub: 'somebody' }))).status).toBe(401)
})

test('of twenty calls at once with one token that starts work, one counts', async () => {
  const bearer = token({}, { action: 'execute' })
  const headers = { authorization: `Bearer ${bearer}` }
  const calls = Array.from({ length: 20 }, () => daemon.post('/v1/runs/resume', { run_id: 'none' }, headers))
  const statuses = (await Promise.all(calls)).map(({ status }) => status).sort()
  expect(statuses).toEqual([...Array(19).fill(401), 404])
})
