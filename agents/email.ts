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
// https://nodemailer.com/message  https://www.rfc-editor.org/rfc/rfc5321

import { hostname } from 'node:os'
import { basename } from 'node:path'
import { Readable } from 'node:stream'
import { type AgentContext, AgentError, type AgentResult, agent, Type, withRetries } from 'cadre'
import {
  chosenChannels,
  chunksIn,
  filePath,
  headerLine,
  messageFields,
  missingSmtp,
  oneLine,
  refusalsOf,
  SmtpOptions,
  type SmtpRefusal,
  smtpServer,
  standardMessage,
  whyNoSmtp,
  withDeadline,
  withSmtp,
} from 'cadre/vendors'

const SIGN_IN_TIMEOUT = 30_000
const SUBJECT_MOST = 150

const { smtp_host, ...otherOptions } = SmtpOptions
const Settings = Type.Object({
  smtp_host,
  channels: Type.Record(
    Type.String(),
    Type.String({
      pattern: '^[^\\r\\n\\0]+@[^\\r\\n\\0]+$',
      'x-expected': 'an e-mail address, such as ops@acme.com',
      description: 'An e-mail address, with or without a name: Operations <ops@acme.com>.',
    }),
    { minProperties: 1, description: 'A mapping of channel names to e-mail addresses.' },
  ),
  ...otherOptions,
  from_address: Type.Optional(headerLine('The address that mail comes from. By default it is the username.')),
  from_name: Type.Optional(headerLine('The name that mail comes from.')),
})
type Settings = Type.Static<typeof Settings>
type Context = AgentContext<Settings>

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
  check: ({ from_address, ...server }) => ({
    ...whyNoSmtp(server),
    from_address: from_address !== undefined && whyNoAddress(from_address),
  }),
  missing: missingSmtp,
  async doctor(context) {
    const { username, channels, from_address } = context.settings
    await withSmtp(context, transport => withDeadline(context, transport.verify(), SIGN_IN_TIMEOUT))
    const { host, port } = smtpServer(context.settings)
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
function partly(data: Type.Static<typeof Partly>, refusals: readonly SmtpRefusal[], { callName }: Context): AgentError {
  const { accepted, rejected, deferred, message_id } = data
  const words = (address: string) => {
    const said = refusals.find(({ recipient }) => recipient === address)?.response
    return said === undefined ? address : `${address} (${said})`
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
): Promise<{ accepted: string[]; refusals: readonly SmtpRefusal[] }> {
  return withSmtp(context, async transport => {
    const attachments = files.map(([filename, file]) => ({
      filename,
      content: Readable.from(chunksIn(file.stream()), { objectMode: false }),
    }))
    const envelope = others && { envelope: { from: mail.from.address, to: others } }
    try {
      const sent = await transport.sendMail({ ...mail, ...envelope, attachments, signal: context.signal })
      return { accepted: sent.accepted.map(String), refusals: refusalsOf(sent) }
    } catch (error) {
      const refusals = refusalsOf(error as Parameters<typeof refusalsOf>[0])
      // Of those that an earlier attempt left, one that is refused for good is not asked again.
      if (others && refusals.some(({ forNow }) => !forNow)) return { accepted: [], refusals }
      throw error
    }
  })
}

function whyNoAddress(text: string): string | null {
  if (/^[^\s@<>]+@[^\s@<>]+$/.test(text)) return null
  const [, address] = /<([^\s@<>]+@[^\s@<>]+)>/.exec(text) ?? []
  return address
    ? `must be the address alone: write ${address}, and the name as from_name`
    : 'must be an e-mail address: write it as cadre@acme.com'
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
