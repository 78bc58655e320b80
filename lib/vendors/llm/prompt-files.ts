// The files that are sent with a prompt: text, images and PDF, distinguished by their content.

import { basename } from 'node:path'
import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import type { Input } from './question.ts'

/** Maximum number of bytes of all files together. Vendors accept requests of about 32 MB, and base64 adds a third. */
const MOST = 20 * 1024 * 1024

const KINDS: readonly [magic: RegExp, kind: Input['kind'], type: string][] = [
  [/^\x89PNG\r\n/, 'image', 'image/png'],
  [/^\xff\xd8\xff/, 'image', 'image/jpeg'],
  [/^GIF8/, 'image', 'image/gif'],
  [/^RIFF[\s\S]{4}WEBP/, 'image', 'image/webp'],
  [/^%PDF-/, 'pdf', 'application/pdf'],
]

/** Reads the files. Throws an AgentError for a file of another kind, and for too many bytes. */
export async function inputsOf(context: AgentContext<unknown>, paths: readonly string[]): Promise<Input[]> {
  const files = await Promise.all(paths.map(path => context.read(path)))
  const size = files.reduce((sum, file) => sum + file.size, 0)
  if (size > MOST) {
    throw new AgentError(`[${context.callName}] the files have ${size} bytes, but at most ${MOST} can be sent`, {
      code: 'too_large',
      hint: 'send fewer files, or only the parts that matter',
      sent: 'no',
    })
  }
  return Promise.all(files.map(async (file, at) => inputOf(context, paths[at]!, await file.bytes())))
}

function inputOf({ callName }: AgentContext<unknown>, path: string, bytes: Uint8Array): Input {
  const name = basename(path)
  const head = Buffer.from(bytes.subarray(0, 16)).toString('latin1')
  const [, kind, type] = KINDS.find(([magic]) => magic.test(head)) ?? []
  if (kind && type) return { kind, name, type, content: Buffer.from(bytes).toString('base64') }
  try {
    return { kind: 'text', name, type: 'text/plain', content: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch (cause) {
    throw new AgentError(`[${callName}] ${path} is not a text, an image (PNG, JPEG, GIF, WebP) or a PDF`, {
      code: 'invalid_request',
      hint: 'convert the file to one of these kinds before',
      sent: 'no',
      cause,
    })
  }
}
