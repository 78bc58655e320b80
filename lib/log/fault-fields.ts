// What the log says of an error that is a fault of this program.

/** Without the values of a statement, which an error of the database has behind its text. */
export function faultFields(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { error: 'not an Error' }
  const cut = (text: string) => text.split('\nparams:', 1)[0]!
  const cause = error.cause instanceof Error ? { cause: cut(error.cause.message) } : {}
  const frames = error.stack?.split('\n').filter(line => line.startsWith('    at ')) ?? []
  return { error: `${error.name}: ${cut(error.message)}`, ...cause, stack: frames.slice(0, 8).map(line => line.trim()) }
}
