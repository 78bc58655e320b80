// The signature of a published team: what its publisher's key (Ed25519) says of a name, a version and all files.
//
// Signed are the bytes of `cadre package signature 1\n`, followed by the JSON text of the list `[name, version, sha256]`
// without white space, in UTF-8. `sha256` is that of `packageDigest`, which covers every path and every byte, so a
// signature fits no other name, version or content. The first line keeps it from meaning anything elsewhere.
// lib/program/signing-key.ts says how keys and signatures are written.

import { isSignedBy, type SigningKey, signatureOf } from '../../program/signing-key.ts'
import type { PackageSignature } from './packages.ts'

const DOMAIN = 'cadre package signature 1\n'

/** What is signed. `sha256`: of `packageDigest`, hex. */
export interface SignedPackage {
  name: string
  version: string
  sha256: string
}

export function signPackage(signed: SignedPackage, key: SigningKey): PackageSignature {
  return { key: key.key, value: signatureOf(bytesOf(signed), key).toString('base64url') }
}

/** Whether `key` of the signature signed exactly this. False for a text that is not a key or not a signature. */
export function verifyPackage(signed: SignedPackage, { key, value }: PackageSignature): boolean {
  return isSignedBy(key, bytesOf(signed), Buffer.from(value, 'base64url'))
}

function bytesOf({ name, version, sha256 }: SignedPackage): Buffer {
  return Buffer.from(DOMAIN + JSON.stringify([name, version, sha256]))
}
