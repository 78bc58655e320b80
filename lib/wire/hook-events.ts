// The events of webhooks. Nothing is imported here, so that the pages can take them without loading schemas.

export const HOOK_EVENTS = ['run.completed', 'run.failed', 'run.awaiting_input', 'daemon.stale'] as const
