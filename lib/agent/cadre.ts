// The module `cadre`, which agent files import from, whatever folder they lie in.

export { DURATION_PATTERN, parseDuration } from '../duration.ts'
export type { Json, JsonObject } from '../json.ts'
export { Type } from '../type.ts'
export { adfToMarkdown } from './adf-read.ts'
export { type AdfNode, markdownToAdf } from './adf-write.ts'
export { type AtlassianContext, AtlassianSettings, atlassian, siteOf } from './atlassian.ts'
export { bitbucketHost } from './bitbucket.ts'
export type { CodeHost, PullRequest } from './code-host.ts'
export { readDatadogEvent } from './datadog-event.ts'
export type { AgentContext, AgentResult, Diagnosis, Effect, FetchOptions, FileRecord, NotifyEvent } from './define.ts'
export { AgentError, agent, secret, withSent } from './define.ts'
export { type DispatchIssue, keysById, readKnownIssues, readNewIssues } from './dispatch.ts'
export * as drive from './drive.ts'
export { safeName } from './files.ts'
export { githubHost } from './github.ts'
export { HubSpotFilter, toHubSpotFilter } from './hubspot-filter.ts'
export * as jira from './jira.ts'
export { DATA_BYTES, LIMIT, Limit, pagesOf, stepsOf, writeListing } from './listing.ts'
export { chosenChannels, messageFields, standardMessage } from './message.ts'
export { flowing, persist, within } from './persist.ts'
export { replyError } from './reply.ts'
export { pageText, readStorage } from './storage.ts'
export { storageToMarkdown } from './storage-read.ts'
export { markdownToStorage } from './storage-write.ts'
export { storeClient } from './store.ts'
export { storeError } from './store-error.ts'
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
} from './vendor.ts'
export { commitAndPush, headOf, openWorktree, type Worktree } from './worktree.ts'
export * as zendesk from './zendesk.ts'
