/** Runs the work of a command, and sets the exit code. `path` is the team that the command was given. */
export type Act = (work: () => Promise<unknown>, path?: string) => Promise<void>
