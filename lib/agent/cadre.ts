// The module `cadre`, which agent files import from, whatever folder they lie in.

export { Type } from 'typebox'
export { DURATION_PATTERN, parseDuration } from '../duration.ts'
export type { Json, JsonObject } from '../json.ts'
export type { AgentContext, AgentResult, Effect, FetchOptions, FileRecord, NotifyEvent } from './define.ts'
export { AgentError, agent, secret } from './define.ts'
export { safeName } from './files.ts'
export { persist, within } from './persist.ts'
export { replyError } from './reply.ts'
export {
  BaseUrl,
  basicAuth,
  entryOf,
  explain,
  jsonApi,
  Limit,
  pagesOf,
  pathSegment,
  readText,
  writeListing,
} from './vendor.ts'
