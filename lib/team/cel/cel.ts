// The door of this room: CEL expressions, and the templates that hold them.

export type { Names, Use } from './survey.ts'
export {
  COMMAND_TEXT,
  compileEntry,
  compileExpression,
  compileTemplate,
  constant,
  hasTemplate,
  type Site,
} from './template.ts'
export { Work } from './work.ts'
