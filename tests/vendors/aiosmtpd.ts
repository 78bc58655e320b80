// aiosmtpd as a process, where it is installed, with what it received.

import PostalMime from 'postal-mime'
import { PASSWORD, type Received, USER } from './mail.ts'
import { hasPython, pythonProgram } from './python.ts'

export const hasAiosmtpd = hasPython('aiosmtpd', 'python3-aiosmtpd')

/** On a free port; with a certificate and its key it takes mail under STARTTLS only, else it offers none. */
export async function aiosmtpd(files: { cert: string; key: string } | null) {
  const received: Received[] = []
  const args = [USER, PASSWORD, ...(files ? [files.cert, files.key] : [])]
  const { first, stop } = await pythonProgram('mail_server.py', args, async line => {
    const { mail, ...envelope } = JSON.parse(line)
    received.push({ ...envelope, mail: await PostalMime.parse(Buffer.from(mail, 'latin1')) })
  })
  return { port: Number(first), received, close: stop }
}
