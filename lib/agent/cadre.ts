// The module `cadre`, which agent files import from, whatever folder they lie in.

export { DURATION_PATTERN, parseDuration } from '../duration.ts'
export type { Json, JsonObject } from '../json.ts'
export { Type } from '../type.ts'
export { adfToMarkdown } from '../vendors/atlassian/adf-read.ts'
export { type AdfNode, markdownToAdf } from '../vendors/atlassian/adf-write.ts'
export { type DispatchIssue, keysById, readKnownIssues, readNewIssues } from '../vendors/atlassian/issues-file.ts'
export * as jira from '../vendors/atlassian/jira.ts'
export { pageText, readStorage } from '../vendors/atlassian/page-text.ts'
export { type AtlassianContext, AtlassianSettings, atlassian, siteOf } from '../vendors/atlassian/site.ts'
export { storageToMarkdown } from '../vendors/atlassian/storage-read.ts'
export { markdownToStorage } from '../vendors/atlassian/storage-write.ts'
export { readDatadogEvent } from '../vendors/datadog-event.ts'
export { bitbucketHost } from '../vendors/git/bitbucket.ts'
export type { CodeHost, PullRequest } from '../vendors/git/code-host.ts'
export { githubHost } from '../vendors/git/github.ts'
export { commitAndPush, headOf, openWorktree, type Worktree } from '../vendors/git/worktree.ts'
export * as drive from '../vendors/google/drive.ts'
export { HubSpotFilter, toHubSpotFilter } from '../vendors/hubspot-filter.ts'
export { storeClient } from '../vendors/s3.ts'
export { storeError } from '../vendors/s3-error.ts'
export * as zendesk from '../vendors/zendesk.ts'
export { chosenChannels, messageFields, standardMessage } from './channel-message.ts'
export type { AgentContext, AgentResult, Diagnosis, Effect, FetchOptions, FileRecord, NotifyEvent } from './define.ts'
export { AgentError, agent, secret, withSent } from './define.ts'
export { safeName } from './files.ts'
export {
  BaseUrl,
  basicAuth,
  beforehand,
  type Call,
  entryOf,
  explain,
  jsonApi,
  lacking,
  needsOne,
  pathSegment,
  readText,
  wordOf,
} from './json-api.ts'
export { DATA_BYTES, LIMIT, Limit, pagesOf, stepsOf, writeListing } from './listing.ts'
export { replyError } from './reply.ts'
export { flowing, persist, within } from './retries.ts'
