// A message in the form of a server, within its limits.
// https://docs.slack.dev/reference/block-kit/blocks
// https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using

import { type ChatMarks, markdownToChat } from '../markdown/render-markdown.ts'
import type { ChatServer } from './webhook.ts'

export interface ChatMessage {
  subject?: string | undefined
  /** Markdown. */
  message: string
  /** The name of the run, and its address if there is one. */
  run: { name: string; team: string; url: string | null }
}

/** Slack: maximum number of characters of a section, of its blocks, and of `text`, of which some is kept for the link. */
const SECTION_MOST = 3_000
const TEXT_MOST = 40_000
const BLOCKS_MOST = 50
/** Teams: maximum number of bytes of a message, with some kept for what surrounds it there. */
const TEAMS_MOST = 28 * 1024 - 1_024
/** No server takes a longer message, so that the rest need not be converted. */
const SOURCE_MOST = 100_000
const CUT = '… (cut off: see the run)'

const SLACK_MARKS: ChatMarks = {
  text: plain => slackText(inert(plain)),
  strong: '*',
  emphasis: '_',
  strikethrough: '~',
  code: '`',
  block: '```',
}
/** Adaptive Cards know a part of Markdown, without code and without a way to escape marks. */
const CARD_MARKS: ChatMarks = {
  text: plain => inert(plain).replaceAll('](', ']\u2060('),
  strong: '**',
  emphasis: '_',
  strikethrough: '',
  code: '',
  block: '',
}

/** The body of the request, as JSON. */
export function payloadOf(server: ChatServer, message: ChatMessage): string {
  return JSON.stringify(server === 'teams' ? cardOf(message) : blocksOf(message))
}

function blocksOf({ subject, message, run }: ChatMessage) {
  const name = slackText(run.name)
  const link = run.url ? `<${run.url}|${name}>` : name
  const tail = run.url ? `\n${link}` : ''
  const title = subject ? `*${SLACK_MARKS.text(oneLine(subject))}*\n` : ''
  const text = title + cut(markdownToChat(shortened(message), SLACK_MARKS), TEXT_MOST - title.length - tail.length)
  const parts = sections(text)
  return {
    text: text + tail,
    blocks: [
      ...parts.map(part => ({ type: 'section', text: { type: 'mrkdwn', text: part } })),
      { type: 'context', elements: [{ type: 'mrkdwn', text: `${slackText(run.team)} · run ${link}` }] },
    ],
    link_names: false,
    unfurl_links: false,
  }
}

function cardOf({ subject, message, run }: ChatMessage) {
  const text = markdownToChat(shortened(message), CARD_MARKS)
  const around = (shown: string) => ({
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          msteams: { width: 'Full' },
          body: [
            ...(subject ? [{ ...block(CARD_MARKS.text(oneLine(subject))), weight: 'Bolder', size: 'Medium' }] : []),
            block(shown),
            { ...block(`${inert(run.team)} · run ${inert(run.name)}`), isSubtle: true, size: 'Small' },
          ],
          ...(run.url && { actions: [{ type: 'Action.OpenUrl', title: 'Open the run', url: run.url }] }),
        },
      },
    ],
  })
  let most = text.length
  for (;;) {
    const card = around(cut(text, most))
    const excess = Buffer.byteLength(JSON.stringify(card)) - TEAMS_MOST
    if (excess <= 0 || most === 0) return card
    // A character has at most six bytes in JSON.
    most = Math.max(0, Math.min(most, text.length) - Math.ceil(excess / 6) - 1)
  }
}

function block(text: string) {
  return { type: 'TextBlock', text, wrap: true }
}

function shortened(text: string): string {
  return cut(text, SOURCE_MOST)
}

/** At most `most` characters, with a note where something is missing. */
function cut(text: string, most: number): string {
  if (text.length <= most) return text
  const kept = text.slice(0, wholeUntil(text, most - CUT.length - 4))
  return `${kept}${isOpen(kept) ? '\n```\n' : ' '}${CUT}`
}

/** Pieces that fit into sections, which end at the end of a line where possible. A block of code goes on in the next. */
function sections(text: string): string[] {
  const parts: string[] = []
  const fence = '```'
  let rest = text
  while (rest.length > SECTION_MOST && parts.length < BLOCKS_MOST - 2) {
    const most = SECTION_MOST - fence.length - 1
    const line = rest.lastIndexOf('\n', most)
    const at = line > SECTION_MOST / 2 ? line + 1 : wholeUntil(rest, most)
    const part = rest.slice(0, at)
    const goesOn = isOpen(part)
    parts.push(goesOn ? `${part.replace(/\n$/, '')}\n${fence}` : part)
    rest = (goesOn ? `${fence}\n` : '') + rest.slice(at)
  }
  return [...parts, rest]
}

const isOpen = (text: string): boolean => (text.match(/^```/gm) ?? []).length % 2 === 1

/** The largest length up to `most` that splits neither an escape such as `&amp;` nor a character of two units. */
function wholeUntil(text: string, most: number): number {
  const end = text.slice(0, Math.max(0, most))
  return end.replace(/(&[a-z]{0,4}|[\ud800-\udbff])$/, '').length
}

/**
 * Escapes Slack's control characters, so that `<!here>`, `<@U1>` and links with a misleading label remain plain text.
 */
function slackText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** Other servers also expand a plain @all, so an invisible joiner is inserted between the sign and the name. */
function inert(text: string): string {
  return text.replace(/(?<![\p{L}\p{N}_.+-])@(?=[\p{L}\p{N}_])/gu, '@\u2060')
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ')
}
