// The `reason` of errors, beside their code: programs decide by these two words, never by the message.

/** `forbidden`: the grant of the token lacks what the call takes. */
export const LACKS_GRANT = 'lacks_grant'

/** `conflict`: the team is not on the list of the realm. */
export const NOT_LISTED = 'not_listed'

/** `too_large`: the realm has no room for these bytes now. Deletions make room, so that a later attempt may succeed. */
export const STORED_BYTES = 'stored_bytes'

/** `not_found`: the hub has no daemon of this id, as after the restoration of an older copy. */
export const UNKNOWN_DAEMON = 'unknown_daemon'

/** `not_found`: somebody has removed the daemon of this id. */
export const REMOVED_DAEMON = 'removed_daemon'

/** `conflict`: a later start of this daemon's home has called from elsewhere. */
export const MOVED = 'moved'
