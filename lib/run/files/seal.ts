// Encrypts bytes with the key of the home (`<home>/key`, AES-256-GCM). For data on disk that may hold secrets: values
// of secret inputs, and small artifacts while the database keeps them. Bytes sealed with one label cannot be opened
// with another.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { CadreError } from '../../error.ts'
import { createWhole } from '../../files/durable-file.ts'

const ALGORITHM = 'aes-256-gcm'
const KEY_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16

export class Seal {
  readonly file: string
  /** The key as it was read last, and what tells whether its file is still the same. */
  #last: { key: Buffer; ino: number; ctimeMs: number } | null = null

  constructor(home: string) {
    this.file = join(home, 'key')
  }

  close(label: string, bytes: Uint8Array | string): Buffer {
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv(ALGORITHM, this.#key(), iv)
    cipher.setAAD(Buffer.from(label))
    const sealed = Buffer.concat([cipher.update(bytes as Uint8Array), cipher.final()])
    return Buffer.concat([iv, cipher.getAuthTag(), sealed])
  }

  /** Throws when the bytes were sealed with another key or another label. */
  open(label: string, sealed: Uint8Array): Buffer {
    const decipher = createDecipheriv(ALGORITHM, this.#key(), sealed.subarray(0, IV_BYTES))
    decipher.setAAD(Buffer.from(label))
    decipher.setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
    return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES)), decipher.final()])
  }

  /** The key is created when it is first needed. It is looked at each time, so that a replaced key takes effect at once. */
  #key(): Buffer {
    const stats = statSync(this.file, { throwIfNoEntry: false })
    const last = this.#last
    if (stats && last && stats.ino === last.ino && stats.ctimeMs === last.ctimeMs) return last.key
    const key = this.#readKey()
    this.#last = stats ? { key, ino: stats.ino, ctimeMs: stats.ctimeMs } : null
    return key
  }

  #readKey(): Buffer {
    const known = this.#read()
    if (known?.length === KEY_BYTES) return known
    if (known && known.length > 0) {
      const what = `${this.file} must be the ${KEY_BYTES} bytes of a key, but has ${known.length}`
      throw new CadreError('invalid_state', `${what}: restore it, or move it away, which loses what was sealed with it`)
    }
    // Earlier versions could be killed between making the file and writing it. Nothing was sealed with an empty key.
    if (known) rmSync(this.file)
    createWhole(this.file, randomBytes(KEY_BYTES))
    return readFileSync(this.file)
  }

  #read(): Buffer | null {
    try {
      return readFileSync(this.file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      return null
    }
  }
}
