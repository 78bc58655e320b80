// The exports of lib/vendors/chat: webhooks of Slack-compatible servers and of Microsoft Teams.

export { type ChatMessage, payloadOf } from './payload.ts'
export { addressOf, type ChatServer, serverOf, whyNotTaken, whyNoWebhook, wordsOf } from './webhook.ts'
