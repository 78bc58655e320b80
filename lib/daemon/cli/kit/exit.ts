// Exit codes of commands.

export const EXIT = { done: 0, failed: 1, usage: 2, waiting: 3, interrupted: 130 } as const
