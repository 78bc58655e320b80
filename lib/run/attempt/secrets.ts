// The values of `secret` inputs. Only `<home>/secrets/<top run>` has them, encrypted with `<home>/key` (AES-256-GCM), and
// only until that run has ended. The run database and everything that people see have them masked.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { CadreError } from '../../error.ts'
import { writeDurable } from '../../files/durable-file.ts'
import { isRunId, type RunId } from '../../files/run-id.ts'
import type { JsonObject } from '../../json.ts'
import type { KnownSecret } from '../../secrets/redact.ts'
import type { Field } from '../../team/team.ts'
import { Seal } from '../files/files.ts'

export class RootSecrets {
  readonly #home: string
  readonly #seal: Seal
  readonly #known = new Map<RunId, JsonObject>()
  /** The texts of known secret inputs, which every attempt asks for. */
  readonly #texts = new WeakMap<JsonObject, readonly KnownSecret[]>()
  readonly #forgetting = new Map<RunId, Promise<void>>()

  constructor(home: string) {
    this.#home = home
    this.#seal = new Seal(home)
  }

  /**
   * Stores the secret inputs durably. Writes no file when there are none. Throws `unavailable` while the
   * disk is full.
   */
  async keep(rootId: RunId, fields: readonly Field[], inputs: JsonObject): Promise<void> {
    const secret = Object.fromEntries(
      fields.filter(field => field.secret && field.name in inputs).map(field => [field.name, inputs[field.name]!]),
    )
    if (Object.keys(secret).length === 0) {
      // So that no read of this run looks for a file.
      this.#known.set(rootId, secret)
      return
    }
    await this.#forgetting.get(rootId)
    try {
      await writeDurable(join(this.#home, 'secrets', rootId), this.#seal.close(rootId, JSON.stringify(secret)))
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      if (code !== 'ENOSPC' && code !== 'EDQUOT') throw cause
      throw new CadreError('unavailable', `the disk of ${this.#home} is full: free space, then try again`, { cause })
    }
    this.#known.set(rootId, secret)
  }

  /** The secret inputs of a tree by name; empty when it has none. */
  read(rootId: RunId): JsonObject {
    const known = this.#known.get(rootId)
    if (known) return known
    const file = join(this.#home, 'secrets', rootId)
    if (!existsSync(file)) {
      this.#known.set(rootId, {})
      return {}
    }
    try {
      const secret: JsonObject = JSON.parse(this.#seal.open(rootId, readFileSync(file)).toString())
      this.#known.set(rootId, secret)
      return secret
    } catch (cause) {
      throw new CadreError(
        'invalid_state',
        `the secret inputs of run ${rootId} cannot be read, because ${file} cannot be decrypted with ${this.#seal.file}: pass them again with \`resume\``,
        { cause },
      )
    }
  }

  /**
   * The texts to mask in everything that this tree records. Empty when the file cannot be read, because then this
   * process does not have the values.
   */
  values(rootId: RunId): readonly KnownSecret[] {
    let inputs: JsonObject
    try {
      inputs = this.read(rootId)
    } catch {
      return []
    }
    let known = this.#texts.get(inputs)
    if (!known) {
      known = Object.entries(inputs).flatMap(([name, value]) =>
        texts(value).map(text => ({ name: `the secret input ${name}`, value: text })),
      )
      this.#texts.set(inputs, known)
    }
    return known
  }

  /** The top runs whose secret inputs are stored. */
  kept(): RunId[] {
    const folder = join(this.#home, 'secrets')
    return existsSync(folder) ? readdirSync(folder).filter(isRunId) : []
  }

  async forget(rootId: RunId): Promise<void> {
    const known = this.#known.get(rootId)
    this.#known.delete(rootId)
    if (known && Object.keys(known).length === 0) return
    // A resume may store them again at once: `keep` waits, so that this does not remove the new file.
    const forgetting = rm(join(this.#home, 'secrets', rootId), { force: true })
    this.#forgetting.set(rootId, forgetting)
    await forgetting.finally(() => this.#forgetting.delete(rootId))
  }
}

/** Every text and number at any depth. */
function texts(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'number') return [String(value)]
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(texts)
  return []
}
