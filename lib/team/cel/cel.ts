// The exports of lib/team/cel: CEL expressions, and the templates that contain them.

export { itemExpression, parseForItems } from './item.ts'
export type { InputTypes } from './known.ts'
export type { Names, Use } from './survey.ts'
export {
  COMMAND_TEXT,
  compileEntry,
  compileExpression,
  compileTemplate,
  constant,
  hasTemplate,
  type Site,
  templateIn,
} from './template.ts'
