// Which server a webhook belongs to, what is wrong with the address of another site, and what the replies mean.

export type ChatServer = 'slack' | 'teams'

/** The hosts of Teams: workflows in their two generations, and the connectors that precede them. */
const TEAMS = /(^|\.)(logic\.azure\.com|api\.powerplatform\.com|webhook\.office\.com|webhook\.office365\.com)$/

/** Teams for Microsoft's hosts; any other server takes what Slack takes. */
export function serverOf(url: string): ChatServer {
  return TEAMS.test(URL.parse(url)?.hostname ?? '') ? 'teams' : 'slack'
}

const SLACK = 'write its webhook, https://hooks.slack.com/services/… (api.slack.com/apps → Incoming Webhooks)'
const WORKFLOW = 'write the address of a workflow "Post to a channel when a webhook request is received"'

/** Addresses of pages and of other interfaces, by host and path, with what to write instead. */
const NO_WEBHOOKS: readonly { address: RegExp; why: string }[] = [
  {
    address: /^hooks\.slack\.com\/(workflows|triggers)\//,
    why: `must be an incoming webhook, but a workflow of Slack takes only its own variables: ${SLACK}`,
  },
  { address: /^hooks\.slack\.com\/(?!services\/[^/]+\/[^/]+\/[^/]+)/, why: `is not the whole address: ${SLACK}` },
  { address: /^(?!hooks\.)([a-z0-9-]+\.)*slack\.com\//, why: `must be a webhook, not a page of Slack: ${SLACK}` },
  {
    address: /^teams\.(microsoft\.com|live\.com|cloud\.microsoft)\//,
    why: `must be a webhook, not a page of Teams: ${WORKFLOW}`,
  },
  {
    address: /^([a-z]+\.)?discord(app)?\.com\/(?!api\/webhooks\/)/,
    why: 'must be a webhook, not a page of Discord: write https://discord.com/api/webhooks/…/slack (channel settings → Integrations)',
  },
]

/** What is wrong with the address of a webhook, in words that continue the name of the setting; null if nothing is. */
export function whyNoWebhook(text: string): string | null {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  if (!url) {
    const named = /^#/.test(text) ? `not the channel ${text}` : 'which begins with https://'
    return `must be the address of a webhook, ${named}: ${SLACK}`
  }
  return NO_WEBHOOKS.find(({ address }) => address.test(url.host + url.pathname))?.why ?? null
}

/** The address to post to. Discord takes Slack's messages only at an address of its own. */
export function addressOf(webhook: string): string {
  const url = new URL(webhook)
  if (/(^|\.)discord(app)?\.com$/.test(url.hostname) && /^\/api\/webhooks\/[^/]+\/[^/]+\/?$/.test(url.pathname)) {
    url.pathname = `${url.pathname.replace(/\/$/, '')}/slack`
  }
  return url.href
}

const GONE = 'the webhook no longer exists: create a new one and set it as'
/** What to do about the words with which Slack and Mattermost refuse a message; a name of the setting follows. */
const WORDS: Readonly<Record<string, string>> = {
  no_service: GONE,
  no_service_id: GONE,
  no_active_hooks: GONE,
  invalid_token: GONE,
  no_team: GONE,
  team_disabled: 'the workspace is disabled; see',
  channel_not_found: 'the channel was deleted: create a webhook for another channel and set it as',
  channel_is_archived: 'the channel is archived: restore it, or create a webhook for another channel and set it as',
  action_prohibited: 'an administrator restricts webhooks in this workspace; see',
  posting_to_general_channel_denied: 'an administrator restricts who may post to this channel; see',
  user_not_found: 'the person that the webhook writes to no longer exists; see',
  invalid_payload: 'the server takes no messages in the form of Slack: check that this is an incoming webhook:',
}
const STATUSES: Readonly<Record<number, string>> = {
  401: 'is this the whole address of a webhook?',
  403: 'an administrator restricts this webhook:',
  404: GONE,
  410: GONE,
}

/** What to do about a refusal, for people. */
export function wordsOf(status: number, said: string, setting: string): string | undefined {
  const word = Object.keys(WORDS).find(each => new RegExp(`\\b${each}\\b`).test(said))
  const advice = word ? WORDS[word] : STATUSES[status]
  return advice && `${advice} ${setting}`
}

/**
 * Why the body of a reply with 2xx is not that of a webhook; null when it is: empty, `ok`, the `1` of Teams, or JSON that
 * reports success.
 */
export function whyNotTaken(body: string): string | null {
  const said = body.trim()
  if (/^("?ok"?|1|)$/i.test(said)) return null
  let value: unknown
  try {
    value = JSON.parse(said)
  } catch {
    return 'which is not the reply of a webhook'
  }
  const { ok, success, result } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  if (ok === false || success === false || result === 'error') return 'which is a refusal'
  return ok === true || ok === 'true' || success === true || result === 'success'
    ? null
    : 'which is not the reply of a webhook'
}
