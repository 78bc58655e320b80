// Bytes under the key of the home (`<home>/key`, AES-256-GCM), for what may hold secrets and has to be on disk: values of
// secret inputs, and small artifacts while the database keeps them. What was sealed for one place opens at no other.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const ALGORITHM = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16

export class Seal {
  readonly file: string

  constructor(home: string) {
    this.file = join(home, 'key')
  }

  close(place: string, bytes: Uint8Array | string): Buffer {
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv(ALGORITHM, this.#key(), iv)
    cipher.setAAD(Buffer.from(place))
    const sealed = Buffer.concat([cipher.update(bytes as Uint8Array), cipher.final()])
    return Buffer.concat([iv, cipher.getAuthTag(), sealed])
  }

  /** Throws where it was sealed under another key, or for another place. */
  open(place: string, sealed: Uint8Array): Buffer {
    const decipher = createDecipheriv(ALGORITHM, this.#key(), sealed.subarray(0, IV_BYTES))
    decipher.setAAD(Buffer.from(place))
    decipher.setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
    return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES)), decipher.final()])
  }

  /** Made when first needed. Read each time: whoever replaces it means what is sealed from then on. */
  #key(): Buffer {
    try {
      return readFileSync(this.file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      writeFileSync(this.file, randomBytes(32), { mode: 0o600, flag: 'wx', flush: true })
      return readFileSync(this.file)
    }
  }
}
