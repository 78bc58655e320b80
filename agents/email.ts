// email: sends mail over SMTP (nodemailer), as text and HTML.
//
//   settings: smtp_host; channels { <name>: <address> }; smtp_port 587, username, password, tls true, from_address
//             (default: username where that is an address, else cadre@<host name>), from_name
//             oauth { client_id, client_secret?, refresh_token, token_url, scope? } instead of password (XOAUTH2)
//   notify:   [on_complete, …], or { on_fail: { channels?, subject?, message?, files? } }
//   a phase with depends_on and without notify sends mail when it runs: channels?, subject?, message?, files?
//
// All chosen channels (default: all of them) get one message, with `files` attached. `tls: true` means STARTTLS, which
// the server must offer, or TLS from the first byte on port 465 and for smtp_host smtps://…. Certificates are checked.
// Without TLS a credential is sent only to this machine. The account must be allowed to send as `from_address`. `data`
// has message_id and accepted.
//
// Mail is sent again only when it certainly was not accepted: the connection failed before the end of DATA, or the
// server refused the message. (RFC 5321, 4.2.5: a server takes responsibility for a message only with its reply to the
// end of DATA.)
//
// When the server takes the message for some addresses only, the attempt fails and keeps who has it. `retry` and `resume`
// send it to those that were refused for now (with a 4xx), and to nobody else.
//
// https://nodemailer.com/smtp  https://developers.google.com/workspace/gmail/imap/xoauth2-protocol
// https://www.rfc-editor.org/rfc/rfc5321  https://www.rfc-editor.org/rfc/rfc3207

import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { basename } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { type AgentContext, AgentError, type AgentResult, agent, secret, Type, withRetries } from 'cadre'
import {
  accessToken,
  chosenChannels,
  chunksIn,
  filePath,
  isLoopback,
  messageFields,
  oneLine,
  refreshForm,
  standardMessage,
  withDeadline,
} from 'cadre/vendors'
import type { SMTPSentMessageInfo, Transporter } from 'nodemailer'

const PORT = 587
/** The port that uses TLS from the first byte (RFC 8314). */
const TLS_PORT = 465
/** The ports on which mail is read. */
const READING_PORTS = [110, 143, 993, 995]
const CONNECT_TIMEOUT = 30_000
const SILENCE_TIMEOUT = 60_000
const SUBJECT_MOST = 150
/** Number of characters of a server's reply that an error quotes. */
const QUOTED = 300

/** A text of one line. A line break could insert another header. */
const line = (description: string) =>
  Type.String({ minLength: 1, pattern: '^[^\\r\\n\\0]+$', 'x-expected': 'a text of one line', description })

const Settings = Type.Object({
  smtp_host: line('The mail server, such as smtp.acme.com; with smtps:// in front it uses TLS from the first byte.'),
  channels: Type.Record(
    Type.String(),
    Type.String({
      pattern: '^[^\\r\\n\\0]+@[^\\r\\n\\0]+$',
      'x-expected': 'an e-mail address, such as ops@acme.com',
      description: 'An e-mail address, with or without a name: Operations <ops@acme.com>.',
    }),
    { minProperties: 1, description: 'A mapping of channel names to e-mail addresses.' },
  ),
  smtp_port: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 65_535,
      description: 'The port of the mail server: by default 587 with STARTTLS, or 465 with smtps://.',
    }),
  ),
  username: Type.Optional(line('The account that signs in. Without it the agent does not sign in.')),
  password: Type.Optional(secret({ description: 'The password of the account, often one made for an application.' })),
  oauth: Type.Optional(
    Type.Object(
      {
        client_id: line('The id of the application that is registered with the provider.'),
        client_secret: Type.Optional(secret({ description: 'The secret of that application, if it has one.' })),
        refresh_token: secret({ description: 'The refresh token that the account has granted to the application.' }),
        token_url: Type.String({
          pattern: '^https?://[^/]',
          'x-expected': 'an address such as https://oauth2.googleapis.com/token',
          description: 'Where access tokens are requested, such as https://oauth2.googleapis.com/token.',
        }),
        scope: Type.Optional(line('The scope to request, where the provider demands one.')),
      },
      { additionalProperties: false, description: 'Signs in with XOAUTH2 instead of a password.' },
    ),
  ),
  tls: Type.Optional(
    Type.Boolean({
      default: true,
      description: 'Whether the connection must be encrypted. Turn it off only for a server on this machine.',
    }),
  ),
  from_address: Type.Optional(line('The address that mail comes from. By default it is the username.')),
  from_name: Type.Optional(line('The name that mail comes from.')),
})
type Settings = Type.Static<typeof Settings>
type Context = AgentContext<Settings>
/** The settings that `check` judges, any of which may be missing. */
type Judged = { [K in 'smtp_host' | 'smtp_port' | 'tls' | 'from_address']?: Settings[K] | undefined }
type Transport = Transporter<SMTPSentMessageInfo>

const Message = Type.Object(
  {
    ...messageFields,
    files: Type.Optional(
      Type.Array(filePath('The path of a file.'), {
        description: 'The paths of the files to attach, in the run or the workspace.',
      }),
    ),
  },
  { additionalProperties: false },
)
type Message = Type.Static<typeof Message>
const addresses = (description: string) => Type.Array(Type.String(), { description })
const sent = {
  message_id: Type.String({ description: 'The id of the message.' }),
  accepted: addresses('The addresses that the server accepted.'),
}
const Sent = Type.Object(sent)
/** What is kept of a message that some have, until the others have it too. */
const Partly = Type.Object({
  ...sent,
  rejected: addresses('The addresses that the server refused.'),
  deferred: addresses('Those of them that it refused for now.'),
})

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Sends mail over SMTP.',
  settings: Settings,
  check,
  missing({ username, password, oauth }) {
    if (oauth && !username) return ['username']
    return username && !password && !oauth ? ['password'] : []
  },
  async doctor(context) {
    const { username, channels, from_address } = context.settings
    await connected(context, transport => withDeadline(context, transport.verify(), CONNECT_TIMEOUT))
    const { host, port } = serverOf(context)
    const said = username ? 'signed in' : 'reached, without signing in'
    const text = `${host}:${port} ${said}; channels ${Object.keys(channels).join(', ')}`
    return { who: username ?? from_address ?? null, missing: [], text }
  },
  phase: {
    description: 'Sends one message to channels.',
    effect: 'once',
    example: { subject: 'The report is ready', files: ['files/report/report.pdf'] },
    entry: Message,
    data: Sent,
    run: send,
  },
  notify: {
    description: 'Tells channels about an event of a run.',
    effect: 'once',
    example: { subject: 'The nightly report failed' },
    entry: Message,
    run: send,
  },
})

/** Addresses that refused a message, with the words of the server. */
type Refusals = readonly { recipient: string; response: string; forNow: boolean }[]

async function send(message: Message, context: Context): Promise<AgentResult> {
  const to = chosenChannels(context.settings.channels, message.channels).map(([, address]) => address)
  const before = context.delivered?.data as Type.Static<typeof Partly> | undefined
  if (before?.deferred.length === 0) throw partly(before, [], context)
  const files = await Promise.all((message.files ?? []).map(path => attachment(path, context)))
  const mail = { ...compose(message, context), to }
  const { accepted, refusals } = await withRetries(context, () => deliver(mail, before?.deferred, files, context))
  const result = { message_id: mail.messageId, accepted: [...(before?.accepted ?? []), ...accepted] }
  const given = (before?.rejected ?? []).filter(address => !before!.deferred.includes(address))
  const rejected = [...given, ...refusals.map(({ recipient }) => recipient)]
  if (rejected.length > 0) {
    const deferred = refusals.filter(({ forNow }) => forNow).map(({ recipient }) => recipient)
    throw partly({ ...result, rejected, deferred }, refusals, context)
  }
  return { text: `sent to ${result.accepted.join(', ')}`, data: result, external: { id: result.message_id } }
}

/** The error of a message that some of its recipients have. */
function partly(data: Type.Static<typeof Partly>, refusals: Refusals, { callName }: Context): AgentError {
  const { accepted, rejected, deferred, message_id } = data
  const words = (address: string) => {
    const said = refusals.find(({ recipient }) => recipient === address)?.response
    return said === undefined ? address : `${address} (${quoted(said)})`
  }
  const forGood = rejected.filter(address => !deferred.includes(address))
  const text = [
    `sent to ${accepted.join(', ')}`,
    deferred.length > 0 && `refused for now: ${deferred.map(words).join(', ')}`,
    forGood.length > 0 && `refused: ${forGood.map(words).join(', ')}`,
  ]
  const said = text.filter(Boolean).join('; ')
  const hint =
    deferred.length > 0
      ? '`resume` sends it to those that were refused for now, and to nobody else'
      : 'it is not sent again: correct the addresses, and send them a message of their own'
  return new AgentError(`[${callName}] ${said}`, {
    code: 'not_delivered',
    retryable: deferred.length > 0,
    hint,
    partial: { text: said, data, external: { id: message_id } },
  })
}

async function attachment(path: string, context: Context): Promise<[name: string, file: Bun.BunFile]> {
  return [basename(path), await context.read(path)]
}

/**
 * Delivers one message over its own connection, to all whom it names or to `others` alone. An error says that nobody got
 * it.
 */
async function deliver(
  mail: ReturnType<typeof compose> & { to: string[] },
  others: string[] | undefined,
  files: [string, Bun.BunFile][],
  context: Context,
): Promise<{ accepted: string[]; refusals: Refusals }> {
  return connected(context, async (transport, onEnd) => {
    transport.use('stream', ({ message }, done) => {
      message.transform(() => new PassThrough().on('end', onEnd))
      done()
    })
    const attachments = files.map(([filename, file]) => ({
      filename,
      content: Readable.from(chunksIn(file.stream()), { objectMode: false }),
    }))
    const envelope = others && { envelope: { from: mail.from.address, to: others } }
    try {
      const sent = await transport.sendMail({ ...mail, ...envelope, attachments, signal: context.signal })
      return { accepted: sent.accepted.map(String), refusals: refusalsOf(sent) }
    } catch (error) {
      const refusals = refusalsOf(error as Refused)
      // Of those that an earlier attempt left, one that is refused for good is not asked again.
      if (others && refusals.some(({ forNow }) => !forNow)) return { accepted: [], refusals }
      throw error
    }
  })
}

type Refused = Pick<SMTPSentMessageInfo, 'rejectedErrors'>

function refusalsOf({ rejectedErrors = [] }: Refused): Refusals {
  return rejectedErrors.map(({ recipient, response, responseCode }) => ({
    recipient: String(recipient),
    response: String(response),
    forNow: responseCode !== undefined && responseCode >= 400 && responseCode < 500,
  }))
}

/**
 * The result of `use` with a connection of its own. `use` calls its second argument when the last byte of a message has
 * been handed over. An access token that the server refuses is renewed once.
 */
async function connected<T>(context: Context, use: (transport: Transport, onEnd: () => void) => Promise<T>) {
  const { createTransport } = await import('nodemailer')
  const server = serverOf(context)
  const vetted = await context.vet(`${isIP(server.host) === 6 ? `[${server.host}]` : server.host}:${server.port}`)
  for (let at = 0, renewed = false; ; ) {
    const address = vetted.addresses[at]!
    const transport = createTransport(await connection(address, server, renewed, context))
    let ended = false
    try {
      return await use(transport, () => {
        ended = true
      })
    } catch (error) {
      if (error instanceof AgentError) throw error
      const { code, command } = error as SmtpError
      if (code === 'EAUTH' && context.settings.oauth && !renewed) renewed = true
      else if (command === 'CONN' && !ended && at + 1 < vetted.addresses.length && !context.signal.aborted) at++
      else throw explain(error as SmtpError, ended, server, context)
    } finally {
      transport.close()
    }
  }
}

interface Server {
  host: string
  port: number
  /** Whether TLS begins with the first byte, instead of with STARTTLS. */
  secure: boolean
}

/** The parts of `smtp_host`: a name or an address, with or without a port and a scheme; null for anything else. */
function partsOf(smtp_host: string): { host: string; ownPort: number | undefined; isSmtps: boolean } | null {
  const [, scheme, bracketed, plain, ownPort] =
    /^(?:(smtps?):\/\/)?(?:\[([\da-f:.]+)\]|([^\s/:@?#]+|[\da-f]*:[\da-f:.]+:[\da-f:.]*))(?::(\d{1,5}))?\/?$/i.exec(
      smtp_host,
    ) ?? []
  const host = (bracketed ?? plain)?.toLowerCase()
  if (!host) return null
  return { host, ownPort: ownPort ? Number(ownPort) : undefined, isSmtps: scheme?.toLowerCase() === 'smtps' }
}

/** What is wrong with the settings of the server and of the sender, in words that continue the key. */
function check({ smtp_host, smtp_port, tls = true, from_address }: Judged) {
  const parts = smtp_host === undefined ? undefined : partsOf(smtp_host)
  const { host = 'smtp.acme.com', ownPort, isSmtps = false } = parts ?? {}
  const port = ownPort ?? smtp_port ?? (isSmtps ? TLS_PORT : PORT)
  const why = isSmtps ? 'smtp_host begins with smtps://' : `port ${TLS_PORT} uses TLS from the first byte`
  return {
    smtp_host:
      (parts === null && 'must be the name of the mail server alone: write it as smtp.acme.com') ||
      (ownPort !== undefined &&
        READING_PORTS.includes(ownPort) &&
        `must not have the port ${ownPort}, on which mail is read: write ${host}:${PORT}`) ||
      (ownPort !== undefined &&
        (smtp_port ?? ownPort) !== ownPort &&
        `must not have the port ${ownPort}, because smtp_port is ${smtp_port}: write ${host}`),
    smtp_port:
      smtp_port !== undefined &&
      READING_PORTS.includes(smtp_port) &&
      `must not be ${smtp_port}, on which mail is read: write ${PORT}`,
    tls: !tls && (isSmtps || port === TLS_PORT) && `must be true, because ${why}: write true`,
    from_address: from_address !== undefined && whyNoAddress(from_address),
  }
}

function whyNoAddress(text: string): string | null {
  if (/^[^\s@<>]+@[^\s@<>]+$/.test(text)) return null
  const [, address] = /<([^\s@<>]+@[^\s@<>]+)>/.exec(text) ?? []
  return address
    ? `must be the address alone: write ${address}, and the name as from_name`
    : 'must be an e-mail address: write it as cadre@acme.com'
}

/** The server of settings in which `check` finds nothing. */
function serverOf({ settings: { smtp_host, smtp_port, tls = true } }: Context): Server {
  const { host, ownPort, isSmtps } = partsOf(smtp_host)!
  const port = ownPort ?? smtp_port ?? (isSmtps ? TLS_PORT : PORT)
  return { host, port, secure: tls && (isSmtps || port === TLS_PORT) }
}

async function connection(address: string, { host, port, secure }: Server, renew: boolean, context: Context) {
  const { agent, callName, settings } = context
  const { username, password = '', oauth, tls = true } = settings
  if (!tls && username && !isLoopback(address)) {
    throw new AgentError(`[${callName}] the credentials must not be sent to ${host} without TLS`, {
      code: 'refused',
      hint: `set agents.${agent}.tls to true, or remove agents.${agent}.username if the server takes mail without it`,
      sent: 'no',
    })
  }
  const auth = oauth
    ? { type: 'OAuth2' as const, user: username ?? '', accessToken: await tokenOf(oauth, renew, context) }
    : { user: username ?? '', pass: password }
  return {
    host: address,
    // The name is for the certificate. An address is checked as an address.
    ...(!isIP(host) && { servername: host }),
    port,
    secure,
    requireTLS: tls && !secure,
    ignoreTLS: !tls,
    ...(username && { auth }),
    connectionTimeout: CONNECT_TIMEOUT,
    greetingTimeout: CONNECT_TIMEOUT,
    socketTimeout: SILENCE_TIMEOUT,
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}

function tokenOf(oauth: NonNullable<Settings['oauth']>, renew: boolean, context: Context): Promise<string> {
  const { token_url: uri } = oauth
  const settings = `agents.${context.agent}.oauth`
  const hint = `check ${settings}.client_id, ${settings}.client_secret and ${settings}.refresh_token`
  const request = async () => ({ doing: `sign in at ${new URL(uri).host}`, uri, form: refreshForm(oauth), hint })
  return accessToken(context, oauth, request, renew)
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
  /** The SMTP command that failed; CONN until the server has greeted. */
  command?: string
  responseCode?: number
  /** The reply of the server. */
  response?: string
}

const TRANSIENT = ['ECONNECTION', 'ESOCKET', 'ETIMEDOUT', 'EDNS']

/**
 * Explains a failure. `ended` says that the last byte of the message had been handed to the connection; only a reply
 * that refuses the message then proves that it was not accepted.
 */
function explain(error: SmtpError, ended: boolean, server: Server, { agent, callName, settings }: Context): AgentError {
  const { host, port, secure } = server
  const { code = '', command, responseCode, message } = error
  const setting = `agents.${agent}`
  const sent = ended && responseCode === undefined ? 'unknown' : 'no'
  const at = `[${callName}] ${host}:${port}`
  const options = { sent, cause: error } as const
  const said = error.response === undefined ? message : quoted(error.response)
  if (code === 'EABORT') return new AgentError(`${at}: stopped`, { ...options, code: 'aborted' })
  if (code === 'EAUTH') {
    const hint = settings.oauth
      ? `check ${setting}.username, and grant a new ${setting}.oauth.refresh_token that may send mail`
      : `check ${setting}.username and ${setting}.password`
    const retryable = responseCode !== undefined && responseCode < 500
    const refused = `${at}: the server refused the credentials: ${said}`
    return new AgentError(refused, { ...options, code: 'unauthorized', retryable, hint })
  }
  if (responseCode !== undefined && code !== 'ETLS') {
    const retryable = responseCode < 500
    const hint =
      /STARTTLS|\bTLS\b|encrypt/i.test(said) && settings.tls === false ? `set ${setting}.tls to true` : undefined
    return new AgentError(`${at}: ${quoted(message)}`, {
      ...options,
      code: 'rejected',
      retryable,
      ...(hint && { hint }),
    })
  }
  if (code === 'ETLS' || /certificate|self.signed|STARTTLS|altname|wrong.version|\bssl\b|\btls\b/i.test(message)) {
    const own = secure
      ? `check that the server uses TLS from the first byte on port ${port}; with STARTTLS the port is usually ${PORT}`
      : `check that the server offers STARTTLS on port ${port}; where it uses TLS from the first byte, set ${setting}.smtp_host to smtps://${host}:${port}`
    const hint = `${own}; for a private CA, start the daemon with NODE_EXTRA_CA_CERTS`
    return new AgentError(`${at}: TLS failed: ${said}`, { ...options, code: 'tls', hint })
  }
  const doubt = sent === 'unknown' ? ', after the whole message was sent' : ''
  const retryable = sent === 'no' && TRANSIENT.includes(code)
  const silent = command === 'CONN' && code === 'ETIMEDOUT' && /greeting/i.test(message)
  return new AgentError(`${at}: ${message}${doubt}`, {
    ...options,
    code: code === 'ETIMEDOUT' ? 'timeout' : 'network',
    retryable,
    hint: silent
      ? `if the server uses TLS from the first byte on this port, set ${setting}.smtp_host to smtps://${host}:${port}`
      : `check ${setting}.smtp_host, and that its port can be reached from this machine`,
  })
}

/** The reply of a server on one line. It is cut between words, because half of a secret would not be masked. */
function quoted(reply: string): string {
  const text = oneLine(reply)
  return text.length <= QUOTED ? text : `${text.slice(0, QUOTED + 1).replace(/\S*$/, '')}…`
}
