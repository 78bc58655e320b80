// The signature of a published team: what its publisher's key (Ed25519) says of a name, a version and all files.
//
// Signed are the bytes of `cadre package signature 1\n`, followed by the JSON text of the list `[name, version, sha256]`
// without white space, in UTF-8. `sha256` is that of `packageDigest`, which covers every path and every byte, so a
// signature fits no other name, version or content. The first line keeps it from meaning anything elsewhere.
// Keys and signatures are base64url without padding; a public key is written `ed25519:<its 32 bytes>`.

import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto'
import type { PackageSignature } from './packages.ts'

const DOMAIN = 'cadre package signature 1\n'
const PREFIX = 'ed25519:'
const KEY_BYTES = 32

/** What is signed. `sha256`: of `packageDigest`, hex. */
export interface SignedPackage {
  name: string
  version: string
  sha256: string
}

/** Both halves of a key. `secret`: its 32 bytes in base64url. */
export interface SigningKey {
  key: string
  secret: string
}

export function newSigningKey(): SigningKey {
  const { d, x } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
  return { key: PREFIX + x, secret: d! }
}

/** Whether a text is a public key, in the one way in which it is written. */
export function isPublicKey(text: string): boolean {
  const raw = text.slice(PREFIX.length)
  const bytes = Buffer.from(raw, 'base64url')
  return text.startsWith(PREFIX) && bytes.length === KEY_BYTES && bytes.toString('base64url') === raw
}

export function signPackage(signed: SignedPackage, { key, secret }: SigningKey): PackageSignature {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: key.slice(PREFIX.length), d: secret }
  const value = sign(null, bytesOf(signed), createPrivateKey({ format: 'jwk', key: jwk }))
  return { key, value: value.toString('base64url') }
}

/** Whether `key` of the signature signed exactly this. False for a text that is not a key or not a signature. */
export function verifyPackage(signed: SignedPackage, { key, value }: PackageSignature): boolean {
  if (!isPublicKey(key)) return false
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: key.slice(PREFIX.length) }
  return verify(null, bytesOf(signed), createPublicKey({ format: 'jwk', key: jwk }), Buffer.from(value, 'base64url'))
}

function bytesOf({ name, version, sha256 }: SignedPackage): Buffer {
  return Buffer.from(DOMAIN + JSON.stringify([name, version, sha256]))
}
