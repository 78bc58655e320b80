// The file `<home>/settings.yml`: YAML that people edit too, so that comments and order stay. Readable by its owner only,
// written whole or not at all.

import { chmod, readFile, stat } from 'node:fs/promises'
import { type Document, isMap, LineCounter, parseDocument, visit } from 'yaml'
import { CadreError } from '../error.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'
import type { Log } from '../log.ts'

/** The document in the file; one that others may read is closed to them. */
export async function readDocument(file: string, log: Pick<Log, 'warn'>): Promise<Document> {
  const found = await stat(file).catch(() => null)
  if (found && (found.mode & 0o077) !== 0) {
    await chmod(file, 0o600)
    log.warn('settings tightened', { file, mode: (found.mode & 0o777).toString(8), now: '600' })
  }
  const lineCounter = new LineCounter()
  // Pretty errors would quote the line, and with it a secret.
  const document = parseDocument(found ? await readFile(file, 'utf8') : '', { lineCounter, prettyErrors: false })
  const [error] = document.errors
  if (!error) return document
  const { line, col } = lineCounter.linePos(error.pos[0])
  throw new CadreError('invalid_request', `${file}:${line}:${col}: this is not valid YAML: ${error.message}`)
}

/** What the document says. Throws `invalid_request` when it is not a mapping. */
export function toObject(document: Document, file: string): JsonObject {
  // `0123` and `1e5` are credentials as likely as numbers: a number that would be printed otherwise stays a text.
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'number' && String(node.value) !== node.source) node.value = node.source
    },
  })
  const value: unknown = document.toJS({ maxAliasCount: 100 }) ?? {}
  if (isObject(value)) return value as JsonObject
  throw new CadreError('invalid_request', `${file}: expected a mapping such as \`agents: {wiki: {base_url: …}}\``)
}

/** Sets `path`, which replaces what is in its way; null removes it. */
export function change(document: Document, path: string[], value: Json): void {
  if (document.contents === null) document.contents = document.createNode({}) as Document['contents']
  if (value === null) {
    if (document.hasIn(path)) document.deleteIn(path)
    return
  }
  for (let length = 1; length < path.length; length++) {
    const above = path.slice(0, length)
    if (document.hasIn(above) && !isMap(document.getIn(above, true))) document.deleteIn(above)
  }
  document.setIn(path, document.createNode(value))
}
