// email: sends mail over SMTP (nodemailer), as text and HTML.
//
//   settings: smtp_host; channels { <name>: <address> }; smtp_port 587, username, password, tls true, from_address
//             (default: username where that is an address, else cadre@<host name>), from_name, plain_auth false
//   notify:   [on_complete, …], or { on_fail: { channels?, subject?, message?, files? } }
//   a phase with depends_on and without notify sends mail when it runs: channels?, subject?, message?, files?
//
// All chosen channels (default: all of them) get one message, with `files` attached. `tls: true` means STARTTLS, which
// the server must offer, or TLS from the first byte on port 465. Certificates are checked. Without TLS a password is
// sent only to this machine, unless `plain_auth` is true. The account must be allowed to send as `from_address`. `data`
// has message_id, accepted and, if some addresses were refused, rejected.
//
// Mail is sent again only when it certainly was not accepted: the connection failed before the end of DATA, or the
// server refused the message. (RFC 5321, 4.2.5: a server takes responsibility for a message only with its reply to the
// end of DATA.)
//
// https://nodemailer.com/smtp  https://www.rfc-editor.org/rfc/rfc5321  https://www.rfc-editor.org/rfc/rfc3207

import { hostname } from 'node:os'
import { basename } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { type AgentContext, AgentError, type AgentResult, agent, secret, Type, withRetries } from 'cadre'
import { chosenChannels, chunksIn, messageFields, oneLine, standardMessage, withDeadline } from 'cadre/vendors'

const PORT = 587
/** The port that uses TLS from the first byte (RFC 8314). */
const TLS_PORT = 465
const CONNECT_TIMEOUT = 30_000
const SILENCE_TIMEOUT = 60_000
const SUBJECT_MOST = 150

/** A text of one line. A line break could insert another header. */
const line = (options = {}) => Type.String({ minLength: 1, pattern: '^[^\\r\\n\\0]+$', ...options })

const Settings = Type.Object({
  smtp_host: line(),
  channels: Type.Record(Type.String(), line({ pattern: '^[^\\r\\n\\0]+@[^\\r\\n\\0]+$' }), {
    minProperties: 1,
    description: 'A mapping of channel names to e-mail addresses.',
  }),
  smtp_port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535, default: PORT })),
  username: Type.Optional(line()),
  password: Type.Optional(secret()),
  tls: Type.Optional(Type.Boolean({ default: true })),
  from_address: Type.Optional(line()),
  from_name: Type.Optional(line()),
  plain_auth: Type.Optional(Type.Boolean({ default: false, description: 'Send the password even without TLS.' })),
})
type Settings = Type.Static<typeof Settings>
type Context = AgentContext<Settings>

const Message = Type.Object(
  { ...messageFields, files: Type.Optional(Type.Array(Type.String({ minLength: 1 }))) },
  { additionalProperties: false },
)
type Message = Type.Static<typeof Message>

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Sends mail over SMTP.',
  settings: Settings,
  missing: ({ username, password }) => (username && !password ? ['password'] : []),
  async doctor(context) {
    const { settings } = context
    const { createTransport } = await import('nodemailer')
    const transport = createTransport(connection(context))
    try {
      await withDeadline(context, transport.verify(), CONNECT_TIMEOUT)
    } catch (error) {
      throw error instanceof AgentError ? error : explain(error as SmtpError, false, context)
    } finally {
      transport.close()
    }
    const { smtp_host, smtp_port = PORT, username, channels } = settings
    const said = username ? 'signed in' : 'reached, without signing in'
    const text = `${smtp_host}:${smtp_port} ${said}; channels ${Object.keys(channels).join(', ')}`
    return { who: username ?? settings.from_address ?? null, missing: [], text }
  },
  phase: { effect: 'once', entry: Message, run: send },
  notify: { effect: 'once', entry: Message, run: send },
})

async function send(message: Message, context: Context): Promise<AgentResult> {
  const to = chosenChannels(context.settings.channels, message.channels).map(([, address]) => address)
  const files = await Promise.all((message.files ?? []).map(path => attachment(path, context)))
  const sent = await withRetries(context, () => deliver({ ...compose(message, context), to }, files, context))
  const accepted = sent.accepted.map(String)
  const refusals = (sent.rejectedErrors ?? []).map(({ recipient, response }) => `${recipient} (${response})`)
  if (refusals.length > 0) context.log(`refused: ${refusals.join('; ')}`)
  return {
    text: `sent to ${accepted.join(', ')}${refusals.length > 0 ? `; refused: ${refusals.join('; ')}` : ''}`,
    data: {
      message_id: sent.messageId,
      accepted,
      ...(refusals.length > 0 && { rejected: sent.rejected.map(String) }),
    },
    external: { id: sent.messageId },
  }
}

async function attachment(path: string, context: Context): Promise<[name: string, file: Bun.BunFile]> {
  return [basename(path), await context.read(path)]
}

/** Delivers one message over its own connection. */
async function deliver(
  mail: ReturnType<typeof compose> & { to: string[] },
  files: [string, Bun.BunFile][],
  context: Context,
) {
  const { createTransport } = await import('nodemailer')
  const transport = createTransport(connection(context))
  let ended = false
  transport.use('stream', ({ message }, done) => {
    message.transform(() =>
      new PassThrough().on('end', () => {
        ended = true
      }),
    )
    done()
  })
  const attachments = files.map(([filename, file]) => ({
    filename,
    content: Readable.from(chunksIn(file.stream()), { objectMode: false }),
  }))
  try {
    return await transport.sendMail({ ...mail, attachments, signal: context.signal })
  } catch (error) {
    throw explain(error as SmtpError, ended, context)
  }
}

function connection({ agent, place, settings }: Context) {
  const { smtp_host, smtp_port = PORT, username, password = '', tls = true, plain_auth = false } = settings
  if (!tls && username && !plain_auth && !isLoopback(smtp_host)) {
    throw new AgentError(`[${place}] the password must not be sent to ${smtp_host} without TLS`, {
      code: 'refused',
      hint: `set agents.${agent}.tls to true, or set agents.${agent}.plain_auth to true if you trust the network`,
      sent: 'no',
    })
  }
  const secure = tls && smtp_port === TLS_PORT
  return {
    host: smtp_host,
    port: smtp_port,
    secure,
    requireTLS: tls && !secure,
    ignoreTLS: !tls,
    ...(username && { auth: { user: username, pass: password } }),
    connectionTimeout: CONNECT_TIMEOUT,
    greetingTimeout: CONNECT_TIMEOUT,
    socketTimeout: SILENCE_TIMEOUT,
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}

function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(host)
}

/**
 * Composes the message. Its id is derived from the key and is therefore the same in all attempts, so that a mailbox can
 * recognise a second copy.
 */
function compose({ subject, message }: Message, context: Context) {
  const { run, key, settings } = context
  const { username, from_name = '' } = settings
  const from_address = settings.from_address ?? (username?.includes('@') ? username : `cadre@${hostname()}`)
  const words = message ?? standardMessage(context)
  const name = `${run.team} · run ${run.name ? `${oneLine(run.name)} (${run.id})` : run.id}`
  const link = run.url ? `<a href="${escaped(run.url)}">${escaped(name)}</a>` : escaped(name)
  const paragraphs = words.split(/\n{2,}/).map(text => `<p>${escaped(text).replaceAll('\n', '<br>\n')}</p>`)
  return {
    from: { name: from_name, address: from_address },
    subject: (subject ?? standardMessage(context)).replace(/[\s\0]+/g, ' ').slice(0, SUBJECT_MOST),
    messageId: `<${key}@${from_address.split('@').at(-1)}>`,
    headers: { 'Auto-Submitted': 'auto-generated' },
    text: `${words}\n\n-- \n${name}${run.url ? `\n${run.url}` : ''}\n`,
    html: `${paragraphs.join('\n')}\n<hr>\n<p>${link}</p>\n`,
  }
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

interface SmtpError extends Error {
  code?: string
  responseCode?: number
}

const TRANSIENT = ['ECONNECTION', 'ESOCKET', 'ETIMEDOUT', 'EDNS']

/**
 * Explains a failure. `ended` says that the last byte of the message had been handed to the connection; only a reply
 * that refuses the message then proves that it was not accepted.
 */
function explain(error: SmtpError, ended: boolean, { agent, place, settings }: Context): AgentError {
  const { smtp_host, smtp_port = PORT } = settings
  const { code = '', responseCode, message } = error
  const sent = ended && responseCode === undefined ? 'unknown' : 'no'
  const server = `[${place}] ${smtp_host}:${smtp_port}`
  const options = { sent, cause: error } as const
  if (code === 'EABORT') return new AgentError(`${server}: stopped`, { ...options, code: 'aborted' })
  if (code === 'EAUTH') {
    const hint = `check agents.${agent}.username and agents.${agent}.password`
    const retryable = responseCode !== undefined && responseCode < 500
    return new AgentError(`${server}: the server refused the credentials (${responseCode})`, {
      ...options,
      code: 'unauthorized',
      retryable,
      hint,
    })
  }
  if (code === 'ETLS' || /certificate|self.signed|STARTTLS|altname/i.test(message)) {
    const hint =
      'check that the server offers STARTTLS on this port (port 465 uses TLS at once); for a private CA, start the daemon with NODE_EXTRA_CA_CERTS'
    return new AgentError(`${server}: TLS failed: ${message}`, { ...options, code: 'tls', hint })
  }
  if (responseCode !== undefined) {
    const retryable = responseCode < 500
    return new AgentError(`${server}: ${message}`, { ...options, code: 'rejected', retryable })
  }
  const doubt = sent === 'unknown' ? ', after the whole message was sent' : ''
  const retryable = sent === 'no' && TRANSIENT.includes(code)
  return new AgentError(`${server}: ${message}${doubt}`, {
    ...options,
    code: code === 'ETIMEDOUT' ? 'timeout' : 'network',
    retryable,
    hint: `check agents.${agent}.smtp_host, and that its port can be reached from this machine`,
  })
}
