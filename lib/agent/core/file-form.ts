// A form with one file in it (RFC 7578), as vendors take attachments. It is streamed from the disk, so that a file of any
// size passes in bounded memory, and is made anew for each attempt.

import { chunksIn } from '../../stream.ts'

/**
 * The body of a request that uploads `file` as the field `field` under the name `name`, after the plain `texts`.
 * @example await call('attach', path, { method: 'POST', body: new FileForm('file', file, 'report.pdf') })
 */
export class FileForm {
  readonly size: number
  readonly type: string
  readonly #file: Bun.BunFile
  readonly #head: Uint8Array
  readonly #tail: Uint8Array

  constructor(field: string, file: Bun.BunFile, name: string, texts: Readonly<Record<string, string>> = {}) {
    const boundary = `form-${crypto.randomUUID()}`
    const before = Object.entries(texts).map(([key, value]) => `${headOf(boundary, key)}\r\n\r\n${value}\r\n`)
    const own = `${headOf(boundary, field)}; filename="${quoted(name)}"\r\ncontent-type: ${file.type}\r\n\r\n`
    this.#file = file
    this.#head = Buffer.from(before.join('') + own)
    this.#tail = Buffer.from(`\r\n--${boundary}--\r\n`)
    this.size = this.#head.byteLength + file.size + this.#tail.byteLength
    this.type = `multipart/form-data; boundary=${boundary}`
  }

  stream(): ReadableStream<Uint8Array> {
    const parts = this.#parts()
    return new ReadableStream(
      {
        async pull(controller) {
          const { done, value } = await parts.next()
          if (done) controller.close()
          else controller.enqueue(value)
        },
        cancel: async () => void (await parts.return()),
      },
      { highWaterMark: 0 },
    )
  }

  async *#parts(): AsyncGenerator<Uint8Array, void> {
    yield this.#head
    yield* chunksIn(this.#file.stream())
    yield this.#tail
  }
}

const headOf = (boundary: string, field: string) =>
  `--${boundary}\r\ncontent-disposition: form-data; name="${quoted(field)}"`

/** As browsers write a name: https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data */
function quoted(name: string): string {
  return name.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}
