// The door of what the agent for databases needs.

export { accessOf, missingAccess, whyNoAccess } from './access.ts'
export type { Database } from './model.ts'
export { openDatabase, ROWS_MOST } from './open.ts'
export { writeRows } from './rows.ts'
export { statementOf } from './statement.ts'
