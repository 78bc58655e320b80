// Keys that sign, and their signatures: Ed25519 (RFC 8032). A public key is written `ed25519:<its 32 bytes>`, and the
// bytes of keys and signatures are base64url without padding. What is signed begins with words that say what it is for,
// so that no signature means anything elsewhere.

import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'

const PREFIX = 'ed25519:'
const KEY_BYTES = 32

/** Both halves of a key. `secret`: its 32 bytes in base64url. */
export interface SigningKey {
  key: string
  secret: string
}

export function newSigningKey(): SigningKey {
  return signingKeyOf(generateKeyPairSync('ed25519').privateKey)
}

/** The key of a private key in PEM (PKCS #8), as `openssl genpkey -algorithm ed25519` makes it. Throws for anything else. */
export function signingKeyFrom(pem: string): SigningKey {
  const secret = createPrivateKey(pem)
  if (secret.asymmetricKeyType !== 'ed25519') throw new Error('the key is not one of Ed25519')
  return signingKeyOf(secret)
}

function signingKeyOf(secret: KeyObject): SigningKey {
  const { d, x } = secret.export({ format: 'jwk' })
  return { key: PREFIX + x, secret: d! }
}

/** Whether a text is a public key, in the one way in which it is written. */
export function isPublicKey(text: string): boolean {
  const raw = text.slice(PREFIX.length)
  const bytes = Buffer.from(raw, 'base64url')
  return text.startsWith(PREFIX) && bytes.length === KEY_BYTES && bytes.toString('base64url') === raw
}

export function signatureOf(bytes: Uint8Array, { key, secret }: SigningKey): Buffer {
  return sign(null, bytes, createPrivateKey({ format: 'jwk', key: { ...jwkOf(key), d: secret } }))
}

/** Whether `key` signed exactly this. False for a text that is not a key and for bytes that are not a signature. */
export function isSignedBy(key: string, bytes: Uint8Array, signature: Uint8Array): boolean {
  return isPublicKey(key) && verify(null, bytes, createPublicKey({ format: 'jwk', key: jwkOf(key) }), signature)
}

const jwkOf = (key: string) => ({ kty: 'OKP', crv: 'Ed25519', x: key.slice(PREFIX.length) })
