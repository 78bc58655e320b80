// A mail server that is not ours (smtp-server), with what it received, and ways to make it refuse.

import type { AddressInfo, Socket } from 'node:net'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

export interface Received {
  from: string
  to: string[]
  user: string | undefined
  secure: boolean
  mail: Email
}

export interface MailVendor {
  port: number
  received: Received[]
  /** Recipients that are refused, each with the server's reply; always, or so many `times`. */
  refuse: Map<string, { code: number; text: string; times?: number }>
  /** The reply to the end of DATA, while it is set. */
  atEnd: { code: number; text: string } | null
  /** What becomes of a message that has arrived: whoever wants it there calls `take`, at once or later. */
  meets: (mail: Received, take: () => void) => 'taken' | 'lost' | 'refused'
  /** Whether the connection ends when the whole message has arrived, without a reply. */
  hangUp: boolean
  close(): Promise<void>
}

export const USER = 'robot@example.org'
export const PASSWORD = 'canary-mail-password'

export async function mailVendor(options: SMTPServerOptions = {}): Promise<MailVendor> {
  const refuse: MailVendor['refuse'] = new Map()
  const received: Received[] = []
  const sockets = new Set<Socket>()
  const refusal = ({ code, text }: { code: number; text: string }) =>
    Object.assign(new Error(text), { responseCode: code })
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    // A look-up of the client's name would leave the machine.
    disableReverseLookup: true,
    closeTimeout: 100,
    onAuth({ username = '', password }, _, done) {
      if (username === USER && password === PASSWORD) done(null, { user: username })
      else done(refusal({ code: 535, text: 'Authentication credentials invalid' }))
    },
    onRcptTo({ address }, _, done) {
      const reply = refuse.get(address)
      if (reply?.times !== undefined && --reply.times === 0) refuse.delete(address)
      done(reply ? refusal(reply) : null)
    },
    async onData(stream, { envelope, user, secure, remotePort }, done) {
      const chunks: Buffer[] = []
      try {
        for await (const chunk of stream) chunks.push(chunk as Buffer)
      } catch {
        // Whoever sent it has gone.
        return
      }
      if (vendor.atEnd) return done(refusal(vendor.atEnd))
      if (vendor.hangUp) return void sockets.forEach(socket => void socket.destroy())
      const mail: Received = {
        from: envelope.mailFrom ? envelope.mailFrom.address : '',
        to: envelope.rcptTo.map(({ address }) => address),
        user: user as string | undefined,
        secure,
        mail: await PostalMime.parse(Buffer.concat(chunks)),
      }
      const outcome = vendor.meets(mail, () => void received.push(mail))
      if (outcome === 'lost') return void [...sockets].find(socket => socket.remotePort === remotePort)?.destroy()
      done(outcome === 'refused' ? refusal({ code: 550, text: '5.7.1 Not allowed' }) : null)
    },
    ...options,
  })
  server.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  // What broken connections say is for the client to report.
  server.on('error', () => {})
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const vendor: MailVendor = {
    port: (server.server.address() as AddressInfo).port,
    received,
    refuse,
    atEnd: null,
    hangUp: false,
    meets(_, take) {
      take()
      return 'taken'
    },
    close: () => new Promise(resolve => server.close(() => resolve())),
  }
  return vendor
}
