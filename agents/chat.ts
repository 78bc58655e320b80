// chat: posts messages to Slack-compatible incoming webhooks (Slack, Mattermost, Rocket.Chat, Discord's /slack
// address).
//
//   settings: channels   { <name>: <webhook URL> } or { <name>: { webhook_url: <URL> } }
//   notify:              [on_complete, …], or { on_fail: { channels?, subject?, message? } }
//   a phase with depends_on and without notify sends a message when it runs: channels?, subject?, message?
//   (default: all channels, and a sentence that names the team, the run and its state)
//
// The URL of a webhook is its credential: anyone who knows it can post. Slack's app needs the scope `incoming-webhook`.
// Text from the run is escaped, so mentions in it do not expand; Slack's own marks (*bold*, `code`) work.
// `data.channels.<name>.status` is the HTTP status of each channel. A message is sent again only when every channel
// definitely refused it. If a channel received it or may have received it, a person decides.
//
// https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
// https://docs.slack.dev/reference/block-kit/blocks

import { type AgentContext, AgentError, type AgentResult, agent, replyError, secret, Type } from 'cadre'
import { chosenChannels, messageFields, oneLine, standardMessage } from 'cadre/vendors'

/** Maximum number of characters in the text of a section block. */
const SECTION_MOST = 3_000
/**
 * Maximum number of characters of a message. Even if every character is escaped, it needs fewer than the 50 blocks that
 * a message may have.
 */
const MESSAGE_MOST = 20_000

const Settings = Type.Object({
  channels: Type.Record(Type.String(), Type.Union([secret(), Type.Object({ webhook_url: secret() })]), {
    minProperties: 1,
    description: 'A mapping of channel names to the URLs of their incoming webhooks.',
  }),
})
type Context = AgentContext<Type.Static<typeof Settings>>
type Channel = Type.Static<typeof Settings>['channels'][string]

const Message = Type.Object(messageFields, { additionalProperties: false })
type Message = Type.Static<typeof Message>

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Posts messages to Slack-compatible incoming webhooks.',
  settings: Settings,
  async doctor({ agent, place, settings }) {
    const wrong = Object.entries(settings.channels).filter(([, channel]) => !/^https?:\/\/[^/]/.test(urlOf(channel)))
    if (wrong.length > 0) {
      const names = wrong.map(([name]) => `agents.${agent}.channels.${name}`).join(', ')
      throw new AgentError(`[${place}] ${names}: the setting must be the address of a webhook`, {
        code: 'invalid_request',
      })
    }
    const names = Object.keys(settings.channels).join(', ')
    return { who: null, missing: [], text: `channels ${names}; a webhook cannot be checked without posting to it` }
  },
  phase: { effect: 'once', entry: Message, run: send },
  notify: { effect: 'once', entry: Message, run: send },
})

async function send(message: Message, context: Context): Promise<AgentResult> {
  const channels = chosenChannels(context.settings.channels, message.channels)
  const body = JSON.stringify(payload(message, context))
  const sent = await Promise.allSettled(channels.map(([name, channel]) => post(name, channel, body, context)))
  const statuses = channels.map(([name], index) => ({ name, ...outcome(sent[index]!) }))
  const text = statuses.map(({ name, said }) => `${name}: ${said}`).join('; ')
  const failures = statuses.flatMap(({ error }) => error ?? [])
  if (failures.length > 0) throw notDelivered(context.place, text, failures, statuses.length)
  return {
    text: `sent to ${statuses.map(({ name }) => name).join(', ')}`,
    data: { channels: Object.fromEntries(statuses.map(({ name, status }) => [name, { status }])) },
  }
}

function urlOf(channel: Channel): string {
  return typeof channel === 'string' ? channel : channel.webhook_url
}

/**
 * Posts to one webhook and returns the HTTP status. A 200 with a web page comes from a sign-in page that did not
 * forward the message.
 */
async function post(name: string, channel: Channel, body: string, context: Context): Promise<number> {
  const reply = await context.fetch(urlOf(channel), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  if (!reply.ok) {
    const gone = `the webhook of agents.${context.agent}.channels.${name} or its channel no longer exists: create a new webhook`
    const forbidden = `an administrator restricts the webhook of agents.${context.agent}.channels.${name}`
    const refused = `is agents.${context.agent}.channels.${name} the whole address of a webhook?`
    throw await replyError(reply, 'post', { 401: refused, 403: forbidden, 404: gone, 410: gone })
  }
  // The message was accepted even if the body of the reply is cut off.
  const said = (await reply.text().catch(() => '')).trimStart()
  if (!/^<(!doctype|html)/i.test(said)) return reply.status
  const hint = `check that agents.${context.agent}.channels.${name} is the address of a webhook that needs no sign-in`
  throw new AgentError(`HTTP ${reply.status} with a web page, which is not the reply of a webhook`, {
    code: 'unexpected_reply',
    hint,
    sent: 'unknown',
  })
}

function outcome(result: PromiseSettledResult<number>): { said: string; status: number | null; error?: AgentError } {
  if (result.status === 'fulfilled') return { said: 'sent', status: result.value }
  if (!(result.reason instanceof AgentError)) throw result.reason
  return { said: result.reason.message, status: null, error: result.reason }
}

/**
 * The error of a message that did not reach all channels. No channel gets a message twice, so the message may be sent
 * again only if every channel refused it.
 */
function notDelivered(place: string, text: string, failures: AgentError[], channels: number): AgentError {
  const refused = failures.length === channels && failures.every(({ sent }) => sent === 'no')
  const doubtful = failures.some(({ sent }) => sent !== 'no')
  const [{ code, hint }] = failures as [AgentError]
  return new AgentError(`[${place}] ${text}`, {
    code: failures.length === 1 ? code : 'not_delivered',
    retryable: refused && failures.some(({ retryable }) => retryable),
    ...(refused && { sent: 'no' }),
    ...(doubtful && { sent: 'unknown' }),
    ...(hint && { hint }),
  })
}

/** The message as blocks for Slack, and as `text` for notifications and for servers that do not support blocks. */
function payload({ subject, message }: Message, context: Context) {
  const { run } = context
  const whole = (subject ? `*${subject.replace(/\s+/g, ' ')}*\n` : '') + (message ?? standardMessage(context))
  const parts = [...sections(shortened(whole))]
  const name = escaped(oneLine(run.name ?? run.id))
  const link = run.url ? `<${run.url}|${name}>` : name
  return {
    text: run.url ? `${parts.join('')}\n${link}` : parts.join(''),
    blocks: [
      ...parts.map(text => ({ type: 'section', text: { type: 'mrkdwn', text } })),
      { type: 'context', elements: [{ type: 'mrkdwn', text: `${escaped(run.team)} · run ${link}` }] },
    ],
    link_names: false,
    unfurl_links: false,
  }
}

function shortened(text: string): string {
  if (text.length <= MESSAGE_MOST) return text
  const rest = text.length - MESSAGE_MOST
  return `${text.slice(0, MESSAGE_MOST).replace(/[\ud800-\udbff]$/, '')} … (${rest} more characters: see the run)`
}

/** The escaped text in pieces that fit into a section. */
function* sections(text: string): Generator<string> {
  let part = ''
  for (const character of inert(text)) {
    const shown = escaped(character)
    if (part.length + shown.length > SECTION_MOST) {
      yield part
      part = ''
    }
    part += shown
  }
  yield part
}

/**
 * Escapes Slack's control characters, so that `<!here>`, `<@U1>` and links with a misleading label remain plain text.
 */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** Other servers also expand a plain @all, so an invisible joiner is inserted between the sign and the name. */
function inert(text: string): string {
  return text.replace(/(?<![\p{L}\p{N}_.+-])@(?=[\p{L}\p{N}_])/gu, '@\u2060')
}
