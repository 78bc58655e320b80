// The exports of lib/team/cel: CEL expressions, and the templates that contain them.

export { formFor, type Givens, givesAnother } from './given.ts'
export { itemExpression, parseForItems } from './item.ts'
export { type InputTypes, KINDS, type Kind } from './known.ts'
export { type Names, NEXT_PAGE, type Use } from './survey.ts'
export {
  COMMAND_TEXT,
  compileEntry,
  compileExpression,
  compileTemplate,
  constant,
  type Given,
  hasTemplate,
  type Site,
  templateIn,
} from './template.ts'
