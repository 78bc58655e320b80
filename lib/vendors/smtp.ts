// Mail servers over SMTP (nodemailer): which server the settings mean, how to sign in there, and what its errors mean.
// Certificates are checked, and without TLS a credential is sent only to this machine.
//
// https://nodemailer.com/smtp  https://developers.google.com/workspace/gmail/imap/xoauth2-protocol
// https://www.rfc-editor.org/rfc/rfc5321  https://www.rfc-editor.org/rfc/rfc3207

import { isIP } from 'node:net'
import { PassThrough } from 'node:stream'
import type { SMTPSentMessageInfo, Transporter } from 'nodemailer'
import type { AgentContext } from '../agent/agent-context.ts'
import { AgentError } from '../agent/core/agent-error.ts'
import { secret } from '../agent/define.ts'
import { isLoopback } from '../agent/net/address.ts'
import { accessToken, refreshForm } from '../agent/oauth.ts'
import { Type } from '../schema/type.ts'
import { oneLine } from '../text/one-line.ts'

const PORT = 587
/** The port that uses TLS from the first byte (RFC 8314). */
const TLS_PORT = 465
/** The ports on which mail is read. */
const READING_PORTS = [110, 143, 993, 995]
const CONNECT_TIMEOUT = 30_000
const SILENCE_TIMEOUT = 60_000
/** Number of characters of a server's reply that an error quotes. */
const QUOTED = 300

/** A text of one line. A line break could insert another header. */
export const headerLine = (description: string) =>
  Type.String({ minLength: 1, pattern: '^[^\\r\\n\\0]+$', 'x-expected': 'a text of one line', description })

export const SmtpOptions = {
  smtp_host: headerLine(
    'The mail server, such as smtp.acme.com; with smtps:// in front it uses TLS from the first byte.',
  ),
  smtp_port: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 65_535,
      description: 'The port of the mail server: by default 587 with STARTTLS, or 465 with smtps://.',
    }),
  ),
  username: Type.Optional(headerLine('The account that signs in. Without it the agent does not sign in.')),
  password: Type.Optional(secret({ description: 'The password of the account, often one made for an application.' })),
  oauth: Type.Optional(
    Type.Object(
      {
        client_id: headerLine('The id of the application that is registered with the provider.'),
        client_secret: Type.Optional(secret({ description: 'The secret of that application, if it has one.' })),
        refresh_token: secret({ description: 'The refresh token that the account has granted to the application.' }),
        token_url: Type.String({
          pattern: '^https?://[^/]',
          'x-expected': 'an address such as https://oauth2.googleapis.com/token',
          description: 'Where access tokens are requested, such as https://oauth2.googleapis.com/token.',
        }),
        scope: Type.Optional(headerLine('The scope to request, where the provider demands one.')),
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
}
const Settings = Type.Object(SmtpOptions)
export type SmtpSettings = Type.Static<typeof Settings>
type Context = AgentContext<SmtpSettings>
/** The settings that are judged, any of which may be missing. */
type Judged = { [K in 'smtp_host' | 'smtp_port' | 'tls']?: SmtpSettings[K] | undefined }
type Transport = Transporter<SMTPSentMessageInfo>

/** Settings that others of them require. */
export function missingSmtp({ username, password, oauth }: Partial<SmtpSettings>) {
  if (oauth && !username) return ['username']
  return username && !password && !oauth ? ['password'] : []
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

/** What is wrong with the settings of the server, in words that continue the key. */
export function whyNoSmtp({ smtp_host, smtp_port, tls = true }: Judged) {
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
  }
}

/** The server of settings in which `whyNoSmtp` finds nothing. */
export function smtpServer({ smtp_host, smtp_port, tls = true }: SmtpSettings): Server {
  const { host, ownPort, isSmtps } = partsOf(smtp_host)!
  const port = ownPort ?? smtp_port ?? (isSmtps ? TLS_PORT : PORT)
  return { host, port, secure: tls && (isSmtps || port === TLS_PORT) }
}

/**
 * The result of `use` with a connection of its own, which sends one message at most. An access token that the server
 * refuses is renewed once. An error says whether the message may have been accepted.
 */
export async function withSmtp<T>(context: Context, use: (transport: Transport) => Promise<T>): Promise<T> {
  const { createTransport } = await import('nodemailer')
  const server = smtpServer(context.settings)
  const vetted = await context.vet(`${isIP(server.host) === 6 ? `[${server.host}]` : server.host}:${server.port}`)
  for (let at = 0, renewed = false; ; ) {
    const address = vetted.addresses[at]!
    const transport = createTransport(await connection(address, server, renewed, context))
    let ended = false
    transport.use('stream', ({ message }, done) => {
      message.transform(() =>
        new PassThrough().on('end', () => {
          ended = true
        }),
      )
      done()
    })
    try {
      return await use(transport)
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

function tokenOf(oauth: NonNullable<SmtpSettings['oauth']>, renew: boolean, context: Context): Promise<string> {
  const { token_url: uri } = oauth
  const settings = `agents.${context.agent}.oauth`
  const hint = `check ${settings}.client_id, ${settings}.client_secret and ${settings}.refresh_token`
  const request = async () => ({ doing: `sign in at ${new URL(uri).host}`, uri, form: refreshForm(oauth), hint })
  return accessToken(context, oauth, request, renew)
}

/** An address that refused a message, with the words of the server. */
export interface SmtpRefusal {
  recipient: string
  response: string
  /** Whether the same message may be accepted later. */
  forNow: boolean
}

/** The addresses that refused a message, from the result of `sendMail` or from its error. */
export function refusalsOf({ rejectedErrors = [] }: Pick<SMTPSentMessageInfo, 'rejectedErrors'>): SmtpRefusal[] {
  return rejectedErrors.map(({ recipient, response, responseCode }) => ({
    recipient: String(recipient),
    response: quoted(String(response)),
    forNow: responseCode !== undefined && responseCode >= 400 && responseCode < 500,
  }))
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
