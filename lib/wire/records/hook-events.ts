// The events of webhooks. Nothing is imported here, so that the pages can take them without loading schemas.

/** `audit.*` is every entry of the audit log; an event `audit.<action>` is one kind of them. */
export const HOOK_EVENTS = [
  ...(['run.completed', 'run.failed', 'run.awaiting_input', 'daemon.stale'] as const),
  ...(['trigger.refused', 'trigger.broken', 'trigger.skipped', 'audit.*'] as const),
] as const

export const isAuditEvent = (event: string): boolean => event.startsWith('audit.')
