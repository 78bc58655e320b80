// chat: posts messages to incoming webhooks of Slack-compatible servers (Slack, Mattermost, Rocket.Chat, Discord) and of
// Microsoft Teams (workflows, and the connectors that precede them).
//
//   settings: channels   { <name>: <webhook URL> } or { <name>: { webhook_url: <URL>, server?: slack | teams } }
//   notify:              [on_complete, …], or { on_fail: { channels?, subject?, message? } }
//   a phase with depends_on and without notify sends a message when it runs: channels?, subject?, message?
//   (default: all channels, and a sentence that names the team, the run and its state)
//
// The URL of a webhook is its credential: anyone who knows it can post. Slack's app needs the scope `incoming-webhook`.
// A message is Markdown and is written with the marks of the server. Text from the run is escaped, so mentions in it do
// not expand, and the target of a link stands after its words. What exceeds the limits of the server is cut off, with a
// note. `data.channels.<name>.status` is the HTTP status of each channel; Teams answers 202 before it posts.
//
// When only some channels take the message, the attempt fails and keeps which. `retry` and `resume` send it to those
// that refused it for now, as with a 429, and to nobody else. If a channel may have received it, a person decides.
//
// https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
// https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook

import { type AgentContext, AgentError, type AgentResult, agent, replyError, secret, Type } from 'cadre'
import {
  addressOf,
  chosenChannels,
  messageFields,
  oneLine,
  payloadOf,
  quoted,
  serverOf,
  standardMessage,
  whyNotTaken,
  whyNoWebhook,
  withMessage,
  wordsOf,
} from 'cadre/vendors'

const SETUP = 'The address of the incoming webhook, which anyone who knows it can post to.'
const Webhook = Type.Object({
  webhook_url: secret({ description: SETUP }),
  server: Type.Optional(
    Type.Enum(['slack', 'teams'], { description: 'What the webhook takes, where its host does not show it.' }),
  ),
})
const Settings = Type.Object({
  channels: Type.Record(Type.String(), Type.Union([secret({ description: SETUP }), Webhook]), {
    minProperties: 1,
    description:
      'Names and the URLs of their incoming webhooks: `{ ops: https://hooks.slack.com/services/T000/B000/x }`.',
  }),
})
type Context = AgentContext<Type.Static<typeof Settings>>
type Channel = Type.Static<typeof Settings>['channels'][string]

const Message = Type.Object(messageFields, { additionalProperties: false })
type Message = Type.Static<typeof Message>
const Sent = Type.Object({
  channels: Type.Record(
    Type.String(),
    Type.Object({ status: Type.Integer({ description: 'The HTTP status with which the server took the message.' }) }),
    { description: 'What each channel answered, by its name.' },
  ),
})

/** What is kept of a message that some channels have: those that refused it, and of these the ones that get it again. */
const Partly = Type.Object({
  ...Sent.properties,
  refused: Type.Array(Type.String()),
  deferred: Type.Array(Type.String()),
})

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Posts messages to incoming webhooks of Slack-compatible servers and of Microsoft Teams.',
  settings: Settings,
  check({ channels = {} }) {
    return Object.fromEntries(
      Object.entries(channels).map(([name, channel]) => {
        if (typeof channel === 'string') return [`channels.${name}`, whyNoWebhook(channel)]
        const url = channel?.webhook_url
        return [`channels.${name}.webhook_url`, url === undefined ? null : whyNoWebhook(url)]
      }),
    )
  },
  async doctor({ settings }) {
    const names = Object.keys(settings.channels).join(', ')
    return { who: null, missing: [], text: `channels ${names}; a webhook cannot be checked without posting to it` }
  },
  phase: {
    description: 'Posts a message to channels.',
    effect: 'once',
    example: { message: 'The report is ready.' },
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
  const configured = context.settings.channels
  const before = context.delivered?.data as Type.Static<typeof Partly> | undefined
  if (before?.deferred.length === 0) throw notAgain(context.delivered!, context)
  const named = message.channels?.map(name => (Object.hasOwn(configured, name) ? name : name.replace(/^#/, '')))
  const channels = chosenChannels(configured, before?.deferred ?? (named && [...new Set(named)]))
  const sent = await Promise.allSettled(
    channels.map(([name, channel]) => post(name, channel, bodyFor(channel, message, context), context)),
  )
  const outcomes = channels.map(([name], index) => ({ name, ...outcome(sent[index]!) }))
  const reached = outcomes.flatMap(({ name, status }) => (status === null ? [] : [[name, { status }] as const]))
  const data = { channels: { ...before?.channels, ...Object.fromEntries(reached) } }
  const failures = outcomes.flatMap(({ name, said, error }) => (error ? { name, said, error } : []))
  const refused = (before?.refused ?? []).filter(name => !outcomes.some(each => each.name === name))
  if (failures.length > 0 || refused.length > 0) throw notDelivered(context.callName, data, failures, refused)
  return { text: `sent to ${Object.keys(data.channels).join(', ')}`, data }
}

function urlOf(channel: Channel): string {
  return typeof channel === 'string' ? channel : channel.webhook_url
}

function bodyFor(channel: Channel, { subject, message }: Message, context: Context): string {
  const { run } = context
  const server = (typeof channel === 'string' ? undefined : channel.server) ?? serverOf(urlOf(channel))
  return payloadOf(server, {
    subject,
    message: message ?? standardMessage(context),
    run: { name: oneLine(run.name ?? run.id), team: run.team, url: run.url },
  })
}

/** Posts to one webhook and returns the HTTP status. A sign-in page answers 200 and does not forward the message. */
async function post(name: string, channel: Channel, body: string, context: Context): Promise<number> {
  const reply = await context.fetch(addressOf(urlOf(channel)), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  const setting = `agents.${context.agent}.channels.${name}`
  const { status } = reply
  const said = await reply.text().catch(error => {
    throw error instanceof AgentError ? withMessage(error, `post: ${error.message}`) : error
  })
  if (!reply.ok) {
    const advice = wordsOf(status, said, setting)
    throw await replyError(
      new Response(said, { status, headers: reply.headers }),
      'post',
      advice ? { [status]: advice } : {},
    )
  }
  const problem = whyNotTaken(said)
  if (problem === null) return status
  const isPage = said.trimStart().startsWith('<')
  const shown = isPage ? 'a web page' : quoted(said)
  throw new AgentError(`post: HTTP ${status} with ${shown}, ${problem}`, {
    code: isPage ? 'no_json' : 'unexpected_reply',
    hint: wordsOf(status, said, setting) ?? `check that ${setting} is the address of a webhook that needs no sign-in`,
    sent: 'unknown',
  })
}

function outcome(result: PromiseSettledResult<number>): { said: string; status: number | null; error?: AgentError } {
  if (result.status === 'fulfilled') return { said: 'sent', status: result.value }
  if (!(result.reason instanceof AgentError)) throw result.reason
  return { said: result.reason.message, status: null, error: result.reason }
}

interface Failure {
  name: string
  said: string
  error: AgentError
}

/**
 * The error of a message that did not reach all channels. No channel gets a message twice: as soon as one has it, the
 * others get it only if they refused it for now, or if a person says so where nobody knows whether they have it.
 */
function notDelivered(
  callName: string,
  { channels }: Type.Static<typeof Sent>,
  failures: Failure[],
  before: string[],
): AgentError {
  const isDoubtful = failures.some(({ error }) => error.sent !== 'no')
  const deferred = failures.filter(({ error }) => error.sent !== 'no' || error.retryable).map(({ name }) => name)
  const refused = [...before, ...failures.map(({ name }) => name)]
  const text = [
    ...Object.keys(channels).map(name => `${name}: sent`),
    ...before.map(name => `${name}: refused`),
    ...failures.map(({ name, said }) => `${name}: ${said}`),
  ].join('; ')
  const isPartial = Object.keys(channels).length > 0
  const { code = 'not_delivered', hint } = failures[0]?.error ?? {}
  return new AgentError(`[${callName}] ${text}`, {
    code: failures.length === 1 ? code : 'not_delivered',
    retryable: !isDoubtful && failures.some(({ error }) => error.retryable),
    ...(isDoubtful ? { sent: 'unknown' as const } : !isPartial && { sent: 'no' as const }),
    ...(isPartial && { partial: { text, data: { channels, refused, deferred } } }),
    ...(hint && { hint }),
  })
}

function notAgain(partial: AgentResult, { callName }: Context): AgentError {
  return new AgentError(`[${callName}] ${partial.text}`, {
    code: 'not_delivered',
    hint: 'it is not sent again: mend the webhooks, and send them a message of their own',
    partial,
  })
}
