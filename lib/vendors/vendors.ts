// The module `cadre/vendors`: code that the built-in agents share in addition to `cadre`. It may change without notice.

export { withMessage, withSent } from '../agent/core/agent-error.ts'
export { filePath, foundAmong, wordOf } from '../agent/entry.ts'
export { type Call, checkedJson, lacking } from '../agent/json-api.ts'
export { DATA_BYTES, LIMIT, stepsOf } from '../agent/listing.ts'
export { quoted } from '../agent/net/reply-error.ts'
export { withDeadline } from '../agent/retries.ts'
export { isObject } from '../json.ts'
export { nullable } from '../schema/schema.ts'
export { chunksIn, streamOf } from '../stream.ts'
export { oneLine } from '../text/one-line.ts'
export { adfToMarkdown } from './atlassian/adf-read.ts'
export { type AdfNode, markdownToAdf } from './atlassian/adf-write.ts'
export { attachmentFields } from './atlassian/attachments.ts'
export * as confluence from './atlassian/confluence.ts'
export { type IssueDraft, keysById, readKnownIssues, readNewIssues } from './atlassian/issues-file.ts'
export * as jira from './atlassian/jira.ts'
export { AtlassianSettings, apiAddress, problemsOfSite } from './atlassian/settings.ts'
export { type AtlassianContext, atlassianApi } from './atlassian/site.ts'
export { storageToMarkdown } from './atlassian/storage-read.ts'
export { markdownToStorage } from './atlassian/storage-write.ts'
export { chosenChannels, messageFields, standardMessage } from './channel-message.ts'
export { type ChatMessage, payloadOf } from './chat/payload.ts'
export { addressOf, type ChatServer, serverOf, whyNotTaken, whyNoWebhook, wordsOf } from './chat/webhook.ts'
export type { Database } from './database/database.ts'
export { accessOf, missingAccess, whyNoAccess } from './database/database-access.ts'
export { openDatabase, ROWS_MOST } from './database/open.ts'
export { writeRows } from './database/rows-file.ts'
export { statementOf } from './database/statement.ts'
export { DATADOG_SITES, datadogApi, datadogApp, datadogSite } from './datadog.ts'
export { BITBUCKET_ROOTS, bitbucketApi, bitbucketHost } from './git/bitbucket.ts'
export { type CodeHost, type PullRequest, whyNoRoot } from './git/code-host.ts'
export { GITHUB_ROOTS, githubApi, githubHost } from './git/github.ts'
export { commitAndPush, headOf, openWorktree, type Worktree } from './git/worktree.ts'
export { whyNoAccount } from './google/access-token.ts'
export { driveAddresses, driveApi, driveJson, driveRequest } from './google/drive.ts'
export { driveUpload } from './google/drive-upload.ts'
export { EXPORT_NAMES, exportTypeOf } from './google/exports.ts'
export { AnthropicReply, anthropicAnswer, anthropicBody } from './llm/anthropic.ts'
export { OpenaiReply, openaiAnswer, openaiBody } from './llm/openai.ts'
export { inputsOf } from './llm/prompt-files.ts'
export type { Answer, Question } from './llm/question.ts'
export { readJson, whyNoSchema } from './llm/structured.ts'
export { markdownToHtml } from './markdown/render-markdown.ts'
export { changesBetween, filtered, grouped, picked } from './records/lists.ts'
export { type Given, recordsIn, writeList, writeRecords, writeTexts } from './records/records.ts'
export { bucketAt, bucketIn, storeAddresses, whyNoStore } from './s3/bucket-address.ts'
export { objectsPage, type StoredObject } from './s3/object-listing.ts'
export { remove } from './s3/removal.ts'
export { type ObjectAddress, urlOf } from './s3/request.ts'
export { download, upload } from './s3/transfer.ts'
export { withSftp } from './sftp.ts'
export {
  headerLine,
  missingSmtp,
  refusalsOf,
  SmtpOptions,
  type SmtpRefusal,
  smtpServer,
  whyNoSmtp,
  withSmtp,
} from './smtp.ts'
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
