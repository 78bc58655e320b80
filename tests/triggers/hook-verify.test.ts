// A request counts only as its sender signed it. For each scheme a request is signed as the sender would, and then changed in
// every place, respelled, repeated, aged and replaced by noise.

import { describe, expect, test } from 'bun:test'
import { HOOK_SCHEMES, headersOf } from '../../lib/triggers/hook/schemes.ts'
import { verify } from '../../lib/triggers/hook/verify.ts'
import { randomFrom, seedOf } from '../support/random.ts'
import { judge, NOW, SENDERS, type Sender, type Sent, sentBy, specOf } from './hook-senders.ts'

const FINE = { ok: true } as const
const PRINTABLE = Array.from({ length: 95 }, (_, at) => String.fromCharCode(0x20 + at))

const withHeader = ({ headers, body }: Sent, name: string, value: string | null): Sent => {
  const changed = new Headers(headers)
  if (value === null) changed.delete(name)
  else changed.set(name, value)
  return { headers: changed, body }
}

/** How the sender's own check judges many requests: the texts of those that it takes. */
function taken(sender: Sender, sents: Iterable<[what: string, sent: Sent]>): { taken: string[]; tried: number } {
  const spec = specOf(sender.fields)
  const found: string[] = []
  let tried = 0
  for (const [what, { headers, body }] of sents) {
    tried++
    if (verify(spec, [sender.secret], { headers, body, query: new URLSearchParams() }, NOW).ok) found.push(what)
  }
  return { taken: found, tried }
}

test('there is a sender of every scheme', () => {
  expect([...new Set(SENDERS.map(({ fields }) => String(fields.scheme)))].sort()).toEqual([...HOOK_SCHEMES].sort())
})

describe.each(SENDERS.map(sender => [sender.name, sender] as const))('%s', (_, sender) => {
  const { signed, covers, time } = sender

  test('what the sender signs is taken', () => {
    expect(judge(sender, sentBy(sender))).toEqual(FINE)
    for (const body of sender.name === 'graph' ? [] : ['', '\0', 'é'.repeat(1_000), '{"a":'.repeat(200)]) {
      expect(judge(sender, sentBy(sender, { body }))).toEqual(FINE)
    }
  })

  test('every changed byte of every header that is signed is refused', () => {
    const sent = sentBy(sender)
    const changes = function* (): Generator<[string, Sent]> {
      for (const name of signed) {
        const text = sent.headers.get(name)!
        for (let at = 0; at < text.length; at++) {
          for (const other of PRINTABLE) {
            if (other === text[at]) continue
            const changed = `${text.slice(0, at)}${other}${text.slice(at + 1)}`
            yield [`${name}: ${changed}`, withHeader(sent, name, changed)]
          }
          const shorter = text.slice(0, at) + text.slice(at + 1)
          yield [`${name}: ${shorter}`, withHeader(sent, name, shorter)]
        }
      }
    }
    const { taken: wrong, tried } = taken(sender, changes())
    expect(wrong).toEqual([])
    expect(tried).toBeGreaterThanOrEqual(signed.length * 95)
  })

  test('every changed byte of what the signature covers is refused', () => {
    const sent = sentBy(sender)
    const text = sent.body
    const parts =
      covers === 'body' ? [[0, text.length]] : covers === 'nothing' ? [] : placesOf(sender.body, covers.text)
    const changes = function* (): Generator<[string, Sent]> {
      for (const [from, to] of parts) {
        for (let at = from!; at < to!; at++) {
          for (let bit = 0; bit < 8; bit++) {
            const body = Uint8Array.from(text)
            body[at]! ^= 1 << bit
            yield [`bit ${bit} of byte ${at}`, { ...sent, body }]
          }
        }
      }
      if (covers !== 'body') return
      yield ['a byte less', { ...sent, body: text.slice(0, -1) }]
      for (const more of ['\0', ' ', '\n'])
        yield ['a byte more', { ...sent, body: Buffer.concat([text, Buffer.from(more)]) }]
    }
    expect(taken(sender, changes()).taken).toEqual([])
  })

  test('other spellings of the same digest are refused', () => {
    const sent = sentBy(sender)
    const found = signed.flatMap(name => {
      const text = sent.headers.get(name)!
      return taken(
        sender,
        spellings(text).map(other => [`${name}: ${other}`, withHeader(sent, name, other)]),
      ).taken
    })
    expect(found).toEqual([])
  })

  test('a header that came twice is refused, whichever it is', () => {
    for (const name of headersOf(specOf(sender.fields).how)) {
      const sent = sentBy(sender)
      const value = sent.headers.get(name) ?? 'x'
      sent.headers.set(name, value)
      sent.headers.append(name, value)
      expect([name, judge(sender, sent)]).toEqual([
        name,
        { ok: false, reason: 'signature', detail: `the header ${name} came more than once` },
      ])
    }
  })

  test('a header that is missing or empty is refused', () => {
    for (const name of signed) {
      const isTime = name === time?.header && name !== 'Stripe-Signature'
      for (const value of [null, '']) {
        // Forgejo sends the header of Gitea, too, and that one counts when its own is not there.
        if (value === null && name === 'X-Forgejo-Signature') continue
        const verdict = judge(sender, withHeader(sentBy(sender), name, value))
        expect([name, value, verdict.ok]).toEqual([name, value, false])
        if (!verdict.ok) expect(verdict.reason).toBe(isTime ? 'timestamp' : 'signature')
      }
    }
    expect(judge(sender, { headers: new Headers(), body: new Uint8Array() }).ok).toBe(false)
  })

  test('an empty secret fits nothing, even what was signed with it', () => {
    for (const name of signed) expect(judge(sender, withHeader(sentBy(sender), name, ''), ['']).ok).toBe(false)
    // Nothing is signed with an empty private key.
    if (sender.name.includes('Ed25519')) return
    expect(judge(sender, sentBy(sender, { secret: '' }), ['']).ok).toBe(false)
  })

  test('any of two secrets may fit, and no other', () => {
    const { secret, other } = sender
    const sent = sentBy(sender)
    expect(judge(sender, sent, [other, secret])).toEqual(FINE)
    expect(judge(sender, sent, [secret, other])).toEqual(FINE)
    for (const secrets of [[], [other], [other, other], [''], [secret.slice(0, -1)], [`${secret}x`], ['\ud800']]) {
      const verdict = judge(sender, sent, secrets)
      expect([secrets, verdict.ok]).toEqual([secrets, false])
      if (!verdict.ok) expect(verdict.reason).toBe('signature')
    }
  })

  test('no detail tells the secret or the signature that would fit', () => {
    const sent = sentBy(sender)
    const wrong = sentBy(sender, { secret: sender.other, body: sender.body.replace(sender.secret, sender.other) })
    for (const each of [wrong, { headers: new Headers(), body: new Uint8Array() }]) {
      const verdict = judge(sender, each)
      const said = verdict.ok ? 'it was taken' : verdict.detail
      expect(said).not.toContain('it was taken')
      expect(said).not.toContain(sender.secret)
      for (const name of signed) expect(said).not.toContain(sent.headers.get(name)!)
    }
  })

  test('noise never throws, and is never taken', () => {
    const random = randomFrom(seedOf(`hook-verify ${sender.name}`))
    const spec = specOf(sender.fields)
    const bytes = (most: number) => Uint8Array.from({ length: random.below(most) }, () => random.below(256))
    const noise = (most: number) =>
      String.fromCharCode(
        ...Array.from({ length: random.below(most) }, () => 0x20 + random.below(random.of([95, 224]))),
      ).replace(/\x7f/g, '~')
    for (let round = 0; round < 300; round++) {
      const sent = sentBy(sender)
      const names = headersOf(spec.how)
      const changed = names.filter(() => random.once(2))
      const signedNames = signed.filter(name => changed.includes(name))
      for (const name of changed) {
        const text = sent.headers.get(name) ?? ''
        const at = random.below(text.length + 1)
        sent.headers.set(
          name,
          random.of([noise(80), text.slice(0, at) + noise(5) + text.slice(at + 1), text.slice(0, at)]),
        )
      }
      const body = random.once(2) ? bytes(200) : sent.body
      const was = sentBy(sender)
      const isSame =
        signedNames.every(name => sent.headers.get(name) === was.headers.get(name)) &&
        (covers === 'nothing' || Buffer.compare(body, was.body) === 0)
      const query = new URLSearchParams(noise(30))
      const verdict = verify(spec, [sender.secret, noise(50)], { headers: sent.headers, body, query }, NOW)
      if (!isSame && sender.name !== 'graph') expect(verdict.ok).toBe(false)
    }
  })
})

const TIMED = SENDERS.flatMap(sender => (sender.time ? [[sender.name, sender, sender.time] as const] : []))

describe.each(TIMED)('%s', (_, sender, time) => {
  test('a time outside the tolerance is refused, and it is said which way', () => {
    const tolerance = 300_000
    for (const ago of [0, tolerance, -tolerance]) expect(judge(sender, sentBy(sender, { ago }))).toEqual(FINE)
    for (const [ago, words] of [
      [tolerance + 1_000, 'ago'],
      [-tolerance - 1_000, 'ahead'],
      [365 * 86_400_000, 'ago'],
    ] as const) {
      const verdict = judge(sender, sentBy(sender, { ago }))
      expect([ago, verdict]).toMatchObject([ago, { ok: false, reason: 'timestamp' }])
      if (!verdict.ok) expect(verdict.detail).toContain(words)
    }
    const strict = { ...sender, fields: { ...sender.fields, tolerance: '30s' } }
    expect(judge(strict, sentBy(sender, { ago: 30_000 }))).toEqual(FINE)
    expect(judge(strict, sentBy(sender, { ago: 31_000 }))).toMatchObject({ ok: false, reason: 'timestamp' })
  })

  test('a request with a wrong signature is told nothing of its time', () => {
    const old = sentBy(sender, { ago: 86_400_000, secret: sender.other })
    expect(judge(sender, old)).toMatchObject({ ok: false, reason: 'signature' })
  })

  test('a time of another form is refused, even when it is signed', () => {
    const text = time.text(NOW)
    const forms = [
      `+${text}`,
      `-${text}`,
      `0x${text}`,
      `${text}.0`,
      `${text}e0`,
      `${text}a`,
      'now',
      'NaN',
      '９９',
      '1'.repeat(16),
    ]
    for (const form of forms) {
      const bytes = Buffer.from(sender.body)
      if (!/^[\x20-\xff]+$/.test(form)) continue
      const headers = new Headers(sender.headers(bytes, sender.secret, form))
      expect([form, judge(sender, { headers, body: bytes })]).toMatchObject([form, { ok: false, reason: 'timestamp' }])
    }
  })
})

/** Where a text stands in another one. */
function placesOf(text: string, part: string): [number, number][] {
  const places: [number, number][] = []
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1)) places.push([at, at + part.length])
  return places
}

/** What decoders, or people, take for the same text. */
function spellings(text: string): string[] {
  const last = text.replace(/=+$/, '').at(-1)!
  const at = text.lastIndexOf(last)
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  const otherLast = [...letters]
    .filter(letter => letter !== last)
    .map(letter => text.slice(0, at) + letter + text.slice(at + 1))
  const all = [
    ...otherLast,
    text.replace(/=+$/, ''),
    `${text}=`,
    `${text}==`,
    text.replaceAll('+', '-').replaceAll('/', '_'),
    text.toUpperCase(),
    text.toLowerCase(),
    `${text}00`,
    `${text}zz`,
    `${text} x`,
    `${text},x`,
    `${text}, ${text}`,
    `${text},${text}`,
    `${text};x`,
    `${text}\u00a0`,
    `"${text}"`,
    text.replace('=', ' = '),
    text.replace('=', ':'),
    text.replace(/(.{8})/, '$1 '),
    text.replace(/^.*?[=,]/, ''),
    encodeURIComponent(text),
  ]
  return [...new Set(all)].filter(other => other !== text)
}

test('an id that could be cut in another place is refused', () => {
  const sender = SENDERS.find(({ name }) => name === 'standard')!
  const spec = specOf(sender.fields)
  const { headers } = sentBy(sender, { body: '1.x' })
  const id = headers.get('webhook-id')!
  const time = headers.get('webhook-timestamp')!
  // The same signed bytes, of which the time has moved into the id, and the body into the time.
  headers.set('webhook-id', `${id}.${time}`)
  headers.set('webhook-timestamp', '1')
  const moved = { headers, body: Buffer.from('x'), query: new URLSearchParams() }
  expect(verify(spec, [sender.secret], moved, 1_000)).toMatchObject({ ok: false, reason: 'signature' })
})

test('several signatures in one header: one that fits is enough, and their number is bounded', () => {
  const standard = SENDERS.find(({ name }) => name === 'standard')!
  const sent = sentBy(standard)
  const good = sent.headers.get('webhook-signature')!
  const of = (text: string) => judge(standard, withHeader(sent, 'webhook-signature', text))
  expect(of(`v1,AAAA ${good}`)).toEqual(FINE)
  expect(of(`v2,other ${good} v1a,abc`)).toEqual(FINE)
  expect(of(`${good} `)).toEqual(FINE) // The blank at the end is no part of a header's value.
  for (const text of [`v1,AAAA  ${good}`, `${good} junk`, `${good},junk`, Array(11).fill(good).join(' ')]) {
    expect([text, of(text).ok]).toEqual([text, false])
  }
  const stripe = SENDERS.find(({ name }) => name === 'stripe')!
  const paid = sentBy(stripe)
  const text = paid.headers.get('Stripe-Signature')!
  const [time, v1] = text.split(',') as [string, string]
  const from = (header: string) => judge(stripe, withHeader(paid, 'Stripe-Signature', header))
  expect(from(`${time},v1=00,${v1}`)).toEqual(FINE)
  expect(from(`${text},v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39`)).toEqual(FINE)
  const bad = [
    time,
    v1,
    `${text},${time}`,
    `${time},t=1,${v1}`,
    `${time},v0${v1.slice(2)}`,
    `${text},`,
    `,${text}`,
    `${text},x`,
  ]
  for (const header of [...bad, `${time},${Array(11).fill(v1).join(',')}`]) {
    expect([header, from(header).ok]).toEqual([header, false])
  }
})

test('a bad header of Forgejo is not rescued by that of Gitea', () => {
  const sender = SENDERS.find(({ name }) => name === 'gitea (Forgejo)')!
  const sent = sentBy(sender)
  expect(sent.headers.get('X-Gitea-Signature')).toBe(sent.headers.get('X-Forgejo-Signature'))
  for (const bad of ['', 'x', 'a'.repeat(64)]) {
    expect(judge(sender, withHeader(sent, 'X-Forgejo-Signature', bad)).ok).toBe(false)
  }
  expect(judge(sender, withHeader(sent, 'X-Gitea-Signature', 'x'))).toEqual(FINE)
})

test('notifications of Microsoft Graph count only if all of them name the secret', () => {
  const sender = SENDERS.find(({ name }) => name === 'graph')!
  const state = sender.secret
  const of = (body: unknown) =>
    judge(sender, { headers: new Headers(), body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)) })
      .ok
  expect(of({ value: [{ clientState: state }, { clientState: state }] })).toBe(true)
  const bad = [
    { value: [{ clientState: state }, { clientState: sender.other }] },
    { value: [{ clientState: state }, {}] },
    { value: [{ clientState: state }, null] },
    { value: [{ clientState: [state] }] },
    { value: [] },
    { value: { clientState: state } },
    { clientState: state },
    [{ clientState: state }],
    null,
    '',
    '{"value":',
    '['.repeat(100_000),
    `{"value":[{"__proto__":{"clientState":"${state}"}}]}`,
    `{"__proto__":{"value":[{"clientState":"${state}"}]}}`,
  ]
  for (const body of bad) expect([body, of(body)]).toEqual([body, false])
})
