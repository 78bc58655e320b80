// A release: files, their SHA-256 in SHA256SUMS as `sha256sum` writes it, and a signature over the version and these sums.
// A file counts only if a release that the right key signed has its sum, and no name in it becomes a path: whoever wants
// a file knows what it is called.
//
// SHA256SUMS.sig has three lines: `cadre release 1`, the version, and the signature in base64. Signed are the bytes of its
// first two lines, with their line ends, followed by those of SHA256SUMS. docs/install.md has the commands of openssl that
// verify it.

import { CadreError } from '../error.ts'
import { isSignedBy, type SigningKey, signatureOf } from './signing-key.ts'

export const SUMS = 'SHA256SUMS'
export const SIGNATURE = 'SHA256SUMS.sig'

const KIND = 'cadre release 1'
const SUM = /^([0-9a-f]{64}) {2}([\w.+-]{1,200})$/
/** https://semver.org, 2.0.0, without build metadata, which has no order. */
const VERSION = /^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$/
const VERSION_CHARACTERS = 64
const SIGNATURE_LINE = /^[A-Za-z0-9+/]{86}==$/

export interface Release {
  version: string
  /** SHA-256 in hexadecimal, by the name of the file. */
  sums: ReadonlyMap<string, string>
}

export const npmFileName = (version: string): string => `cadre-${version}.tgz`
/** `target`: a system as `bun run build` names it, such as `linux-arm64-musl`. */
export const programName = (version: string, target: string): string => `cadre-${version}-${target}`
export const imageName = (version: string, target: string): string => `cadre-${version}-${target}.oci.tar`
export const bomName = (version: string): string => `cadre-${version}.cdx.json`

export function isReleaseVersion(text: string): boolean {
  return text.length <= VERSION_CHARACTERS && VERSION.test(text)
}

/** The text of SHA256SUMS, in the order of the names. */
export function sumsText(sums: ReadonlyMap<string, string>): string {
  return Array.from(sums, ([name, sum]) => `${sum}  ${name}\n`)
    .sort((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1))
    .join('')
}

/** The text of SHA256SUMS.sig. */
export function signRelease(version: string, sums: string, key: SigningKey): string {
  const head = headOf(version)
  return `${head}${signatureOf(Buffer.from(head + sums), key).toString('base64')}\n`
}

/**
 * What a release says, by the texts of its two files. Throws `invalid_request` unless `key` signed exactly this; before
 * that is known, nothing that the texts say is used or repeated.
 */
export function openRelease(sums: Uint8Array, signature: Uint8Array, key: string): Release {
  const [kind, version = '', value = '', ...rest] = Buffer.from(signature).toString('latin1').split('\n')
  const isForm = kind === KIND && isReleaseVersion(version) && SIGNATURE_LINE.test(value) && rest.join('\n') === ''
  if (!isForm) {
    throw new CadreError('invalid_request', `${SIGNATURE} is not the signature of a release; nothing was changed`)
  }
  if (!isSignedBy(key, Buffer.concat([Buffer.from(headOf(version)), sums]), Buffer.from(value, 'base64'))) {
    throw new CadreError(
      'invalid_request',
      `the release is not signed by the key of this cadre, ${key}: ` +
        `${SUMS} or its version was changed, or somebody else made it; nothing was changed`,
    )
  }
  return { version, sums: parseSums(Buffer.from(sums).toString('latin1')) }
}

const headOf = (version: string) => `${KIND}\n${version}\n`

/** Throws `invalid_request` for what is not the text of a SHA256SUMS, or names a file twice. */
export function parseSums(text: string): ReadonlyMap<string, string> {
  const sums = new Map<string, string>()
  for (const line of text.replace(/\n$/, '').split('\n')) {
    const [, sum, name] = SUM.exec(line) ?? []
    if (!sum || !name || sums.has(name)) throw new CadreError('invalid_request', `${SUMS} is not a list of checksums`)
    sums.set(name, sum)
  }
  return sums
}
