// The module `cadre/vendors`: what the built-in agents share beyond `cadre`. It comes without a promise of stability.

export { chosenChannels, messageFields, standardMessage } from '../agent/channel-message.ts'
export { withSent } from '../agent/define.ts'
export { wordOf } from '../agent/entry.ts'
export { type Call, lacking } from '../agent/json-api.ts'
export { DATA_BYTES, LIMIT, stepsOf } from '../agent/listing.ts'
export { withDeadline, withSilenceLimit } from '../agent/retries.ts'
export { isObject } from '../json.ts'
export { chunksIn } from '../stream.ts'
export * from './atlassian/atlassian.ts'
export * from './git/git.ts'
export * from './google/google.ts'
export { storeClient, storeError } from './s3.ts'
