// The line of a log that has the error of its phase. What a phase said besides is more than the explanation of a run has.

/** How it begins, as lib/run/parts.ts writes it. */
const FAILED = 'failed: '

/** How many lines are enough to know whether a phase said more than its errors. */
export const SAID = 10

/** Whether a line has the error of its phase. */
export const isError = ({ stream, text }: { stream: string; text: string }): boolean =>
  stream === 'log' && text.startsWith(FAILED)

export const sayMore = (lines: readonly { stream: string; text: string }[]): boolean =>
  lines.some(line => !isError(line))
