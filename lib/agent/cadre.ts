// The module `cadre`: everything that the author of an agent needs, in whichever folder the agent lies. Each name is
// documented with an example where it is declared. Code that only the built-in agents share is in `cadre/vendors`.

export { DURATION_PATTERN, parseDuration } from '../duration.ts'
export type { Json, JsonObject } from '../json.ts'
export { Type } from '../type.ts'
export type { AgentContext, AgentResult, FileRecord, NotifyEvent } from './agent-context.ts'
export { AgentError } from './agent-error.ts'
export { CommandReport, runCommand } from './command.ts'
export type { Diagnosis } from './define.ts'
export { agent, literal, secret } from './define.ts'
export type { Effect } from './effect.ts'
export { BaseUrl, beforehand, entryOf, needsOne, readText } from './entry.ts'
export { safeName } from './files.ts'
export { basicAuth, jsonApi, pathSegment } from './json-api.ts'
export { Limit, listingOf, pagesOf, writeListing } from './listing.ts'
export { replyError } from './reply.ts'
export { withRetries } from './retries.ts'
export { CommandNeeds } from './sandbox.ts'
