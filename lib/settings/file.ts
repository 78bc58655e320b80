// The file `<home>/settings.yml`. People edit it too, so comments and order are preserved. It is readable by its owner
// only and written atomically.

import { chmod, readFile, stat } from 'node:fs/promises'
import { type Document, isMap, LineCounter, parseDocument, visit } from 'yaml'
import { CadreError } from '../error.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'
import type { Log } from '../log/log.ts'

/** Reads the document. If other users can read the file, its permissions are restricted first. */
export async function readDocument(file: string, log: Pick<Log, 'warn'>): Promise<Document> {
  const found = await stat(file).catch(() => null)
  if (found && (found.mode & 0o077) !== 0) {
    await chmod(file, 0o600)
    log.warn('settings tightened', { file, mode: (found.mode & 0o777).toString(8), now: '600' })
  }
  const lineCounter = new LineCounter()
  // Pretty errors would quote the line, which may contain a secret.
  const document = parseDocument(found ? await readFile(file, 'utf8') : '', { lineCounter, prettyErrors: false })
  const [error] = document.errors
  if (!error) return document
  const { line, col } = lineCounter.linePos(error.pos[0])
  throw new CadreError('invalid_request', `${file}:${line}:${col}: this is not valid YAML: ${error.message}`)
}

/** The content of the document. Throws `invalid_request` when it is not a mapping. */
export function toObject(document: Document, file: string): JsonObject {
  // `0123` and `1e5` may be credentials: a number that would be printed in another form is kept as text.
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'number' && String(node.value) !== node.source) node.value = node.source
    },
  })
  const value: unknown = document.toJS({ maxAliasCount: 100 }) ?? {}
  if (isObject(value)) return value as JsonObject
  throw new CadreError('invalid_request', `${file}: expected a mapping such as \`agents: {wiki: {base_url: …}}\``)
}

/** Sets the value at `path` and replaces any value on the way that is not a mapping. Null removes the value. */
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
