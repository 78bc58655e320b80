// The module `cadre/vendors`: code that the built-in agents share in addition to `cadre`. It may change without notice.

export { chosenChannels, messageFields, standardMessage } from '../agent/channel-message.ts'
export { withMessage, withSent } from '../agent/core/agent-error.ts'
export { foundAmong, wordOf } from '../agent/entry.ts'
export { type Call, checkedJson, lacking } from '../agent/json-api.ts'
export { DATA_BYTES, LIMIT, stepsOf } from '../agent/listing.ts'
export { isLoopback } from '../agent/net/address.ts'
export { quoted } from '../agent/net/reply.ts'
export { withDeadline } from '../agent/retries.ts'
export { isObject } from '../json.ts'
export { nullable } from '../schema/schema.ts'
export { chunksIn, streamOf } from '../stream.ts'
export { oneLine } from '../text/one-line.ts'
export * from './atlassian/atlassian.ts'
export * from './chat/chat.ts'
export * from './database/database.ts'
export { DATADOG_SITES, datadogApi, datadogApp, datadogSite } from './datadog.ts'
export * from './git/git.ts'
export * from './google/google.ts'
export * from './llm/llm.ts'
export { markdownToHtml } from './markdown/markdown.ts'
export { accessToken, refreshForm } from './oauth/oauth.ts'
export {
  bucketAt,
  bucketIn,
  download,
  objectsPage,
  type Place,
  type StoredObject,
  storeAddresses,
  upload,
  urlOf,
  whyNoPlace,
} from './s3/s3.ts'
export { withSftp } from './sftp.ts'
export {
  NOT_STARTED,
  remoteOf,
  SshOptions,
  scriptOf,
  sshEnvironment,
  sshOutput,
  startSsh,
  whyNoSsh,
} from './ssh.ts'
export { talkOf } from './ssh-talk.ts'
export { zendeskSite, zendeskSubdomain } from './zendesk.ts'
