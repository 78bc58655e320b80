// The signature of a package, as docs/hub.md describes it: whoever follows that text signs what hubs and daemons take.

import { expect, test } from 'bun:test'
import { isPublicKey, newSigningKey } from '../lib/program/signing-key.ts'
import { signPackage, verifyPackage } from '../lib/wire/records/package-signature.ts'

const files = [
  { path: 'notes.txt', content_base64: 'aGVsbG8K' },
  { path: 'team.yml', content_base64: 'bmFtZTogIkBhY21lL3QiCg==' },
]
const sha256 = new Bun.CryptoHasher('sha256').update(JSON.stringify(files)).digest('hex')
const content = { name: '@acme/t', version: '1.0.0', sha256 }

test('is made by anybody who follows the description', async () => {
  const { privateKey, publicKey } = (await crypto.subtle.generateKey('Ed25519', true, ['sign'])) as CryptoKeyPair
  const text = `cadre package signature 1\n["@acme/t","1.0.0","${sha256}"]`
  const value = Buffer.from(await crypto.subtle.sign('Ed25519', privateKey, Buffer.from(text))).toString('base64url')
  const raw = Buffer.from(await crypto.subtle.exportKey('raw', publicKey)).toString('base64url')
  expect(verifyPackage(content, { key: `ed25519:${raw}`, value })).toBe(true)
})

test('never changes its form: a key of today gives this signature in every version', () => {
  // The first key of RFC 8032, 7.1.
  const key = `ed25519:${Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex').toString('base64url')}`
  const secret = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex').toString(
    'base64url',
  )
  const signature = signPackage({ name: '@acme/t', version: '1.0.0', sha256: 'ab'.repeat(32) }, { key, secret })
  expect(signature).toEqual({
    key,
    value: 'YGldevI-whiIsJHzpRJR0_XxuGeYGwzxSyQBOpuXsZ8cbl3ib3BPy2E5B-7o5n7DR7-sMNjsemLUUB2LPFg3Bg',
  })
})

test('fits one key, one name, one version and one content', () => {
  const ours = newSigningKey()
  const signature = signPackage(content, ours)
  expect(verifyPackage(content, signature)).toBe(true)
  const others = [
    { ...content, name: '@acme/u' },
    { ...content, version: '1.0.1' },
    { ...content, sha256: `${sha256.slice(1)}0` },
  ]
  for (const other of others) expect(verifyPackage(other, signature)).toBe(false)
  expect(verifyPackage(content, { ...signature, key: newSigningKey().key })).toBe(false)
  for (const value of ['', 'x', '='.repeat(86), 'A'.repeat(86), signature.value.slice(0, -2)]) {
    expect([value, verifyPackage(content, { ...signature, value })]).toEqual([value, false])
  }
})

test('is by a key that is written in one way only', () => {
  const { key } = newSigningKey()
  expect(isPublicKey(key)).toBe(true)
  const body = key.slice('ed25519:'.length)
  for (const text of [
    body,
    `${key}=`,
    `${key} `,
    key.slice(0, -1),
    key.toUpperCase(),
    `rsa:${body}`,
    '',
    `${key.slice(0, -1)}B`,
  ]) {
    expect([text, isPublicKey(text)]).toEqual([text, false])
  }
})
