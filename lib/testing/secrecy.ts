// Credentials are sent only to the vendor: no other server gets them, and they are never shown.

import { expect } from 'bun:test'
import { AgentError } from '../agent/core/agent-error.ts'
import { createRedactor, type KnownSecret } from '../secrets/redact.ts'
import { leavesOf } from '../settings/settings.ts'
import { echo, type FakeVendor, fakeVendor, isFake, refusal, type Vendor } from './fake-vendor.ts'
import { attempt, check, failureOf, type Trial, type Tried, withOtherSecrets } from './trial.ts'

const LONG = 99
/** A shorter half of a credential may be an ordinary word. */
const SHORTEST_HALF = 6

export function secrecy<V extends Vendor>(trial: Trial<V>): void {
  const { subject, open, hasSecrets } = trial

  check('shows no credential, even before anything is masked', async () => {
    await using vendor = await open()
    const secrets = await secretsOf(trial, vendor)
    expect(shownIn(shownBy(await attempt(trial, vendor)), secrets)).toEqual([])
    if (!isFake(vendor)) return
    vendor.fail(/./, () => refusal(400, 'said by the vendor'), { times: LONG })
    expect(shownIn(shownBy(await attempt(trial, vendor)), secrets)).toEqual([])
  })

  if (!hasSecrets) return
  check('fails with a credential that the vendor does not know, and says which setting it is', async () => {
    await using vendor = await open()
    const secrets = await secretsOf(trial, vendor)
    const settings = withOtherSecrets(subject.settingsAt(vendor), secrets)!
    const tried = await attempt(trial, vendor, { settings })
    expect(failureOf(tried).hint).toContain(`agents.${subject.name}.`)
    expect(shownIn(shownBy(tried), secrets)).toEqual([])
  })
}

/** What the vendor says back, and where it redirects to. */
export function secrecyOfRequests<V extends FakeVendor>(trial: Trial<V>): void {
  const { open, example } = trial

  for (const status of [400, 200]) {
    check(`leaves nothing of a credential that the vendor says back with ${status}`, async () => {
      await using vendor = await open()
      vendor.fail(/./, echo(status), { times: LONG })
      const tried = await attempt(trial, vendor)
      const given = (example(vendor).secrets ?? []).reduce(
        (text, secret) => text.replaceAll(secret, '***'),
        shownBy(tried),
      )
      expect(shownIn(tried.mask(given), await secretsOf(trial, vendor))).toEqual([])
    })
  }

  for (const status of [302, 307]) {
    check(`sends no credential where the vendor redirects to with ${status}`, async () => {
      await using vendor = await open()
      using other = fakeVendor(() => ({ hello: 'from another service' }))
      vendor.fail(/./, () => Response.redirect(`${other.url}/elsewhere`, status), { times: LONG })
      await attempt(trial, vendor, { allow: ['127.0.0.1'] })
      const sent = other.seen.map(({ path, query, headers, body }) => [path, String(query), [...headers], body])
      expect(shownIn(JSON.stringify(sent), await secretsOf(trial, vendor))).toEqual([])
    })
  }
}

/** That whatever serves as a credential is declared as one, because only then is it masked. */
export function declaredSecrets<V extends FakeVendor>(trial: Trial<V>): void {
  const { open, subject } = trial

  check('declares as `secret()` every setting that it sends as a credential', async () => {
    await using vendor = await open()
    const settings = subject.settingsAt(vendor)
    const known = new Set((await subject.secretsOf(settings)).map(({ value }) => value))
    await attempt(trial, vendor)
    const sent = new Set(vendor.seen.flatMap(({ headers }) => credentialsIn(headers)))
    const plain = leavesOf(settings).filter(({ value }) => !known.has(`${value}`) && sent.has(`${value}`))
    expect(plain.map(({ path }) => path.join('.'))).toEqual([])
  })
}

/** What proves who the caller is: a token, the password of a user, or a key in a header of its own. */
function credentialsIn(headers: Headers): string[] {
  return [...headers].flatMap(([name, value]) => {
    if (name !== 'authorization') return /key|token|secret|password/.test(name) ? [value] : []
    const [scheme = '', given = ''] = value.split(/ (.*)/s)
    if (!/^basic$/i.test(scheme)) return [given || scheme]
    return [
      Buffer.from(given, 'base64')
        .toString()
        .replace(/^[^:]*:/, ''),
    ]
  })
}

async function secretsOf<V extends Vendor>({ subject, example }: Trial<V>, vendor: V): Promise<KnownSecret[]> {
  const own = (example(vendor).secrets ?? []).map(value => ({ name: 'a secret of the example', value }))
  return [...(await subject.secretsOf(subject.settingsAt(vendor))), ...own]
}

/** Everything of a call that is recorded or shown. Files contain what the vendor sent, and are kept unchanged. */
export function shownBy({ result, error, files, lines }: Tried): string {
  const said =
    error instanceof Error ? [error.message, error instanceof AgentError && error.hint, `${error.cause}`] : []
  return JSON.stringify([result, ...said, Object.keys(files), lines])
}

/** The names of the secrets that appear in a text: complete, encoded, or by half. */
export function shownIn(text: string, secrets: readonly KnownSecret[]): string[] {
  return secrets
    .filter(({ value }) => createRedactor([value, ...halvesOf(value)]).text(text) !== text)
    .map(({ name }) => name)
}

/** The halves of a secret to look for. Of an address only the end counts, because its beginning is public. */
function halvesOf(value: string): string[] {
  const middle = Math.ceil(value.length / 2)
  const halves = /^https?:/.test(value) ? [value.slice(middle)] : [value.slice(0, middle), value.slice(middle)]
  return halves.filter(half => half.length >= SHORTEST_HALF)
}
