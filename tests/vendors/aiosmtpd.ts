// aiosmtpd as a process, where Debian's package is installed, with what it received.

import { join } from 'node:path'
import PostalMime from 'postal-mime'
import { PASSWORD, type Received, USER } from './mail.ts'

/** Debian's own: its packages are not there for another Python. */
const PYTHON = '/usr/bin/python3'

export const isThere = (() => {
  try {
    return Bun.spawnSync([PYTHON, '-c', 'import aiosmtpd']).exitCode === 0
  } catch {
    return false
  }
})()

/** On a free port; with a certificate and its key it takes mail under STARTTLS only, else it offers none. */
export async function aiosmtpd(files: { cert: string; key: string } | null) {
  const program = join(import.meta.dir, 'mail_server.py')
  const child = Bun.spawn([PYTHON, program, USER, PASSWORD, ...(files ? [files.cert, files.key] : [])], {
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const received: Received[] = []
  const port = Promise.withResolvers<number>()
  const read = async () => {
    const lines = child.stdout.pipeThrough(new TextDecoderStream()).pipeThrough(lineStream())
    for await (const line of lines as unknown as AsyncIterable<string>) {
      const said = JSON.parse(line)
      if (typeof said === 'number') port.resolve(said)
      else received.push({ ...said, mail: await PostalMime.parse(Buffer.from(said.mail, 'latin1')) })
    }
    port.reject(new Error('aiosmtpd ended before it listened'))
  }
  void read()
  return {
    port: await port.promise,
    received,
    async close() {
      child.kill()
      await child.exited
    },
  }
}

function lineStream(): TransformStream<string, string> {
  let rest = ''
  return new TransformStream({
    transform(text, controller) {
      const lines = (rest + text).split('\n')
      rest = lines.pop()!
      for (const line of lines) controller.enqueue(line)
    },
  })
}
