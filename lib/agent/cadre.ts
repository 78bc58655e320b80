// The module `cadre`, which agent files import from, whatever folder they lie in.

export { Type } from 'typebox'
export type { AgentContext, AgentResult, Effect, FetchOptions, FileRecord, NotifyEvent } from './define.ts'
export { AgentError, agent, secret } from './define.ts'
