// Replies with a file that somebody else has written: downloads that no browser renders or runs.

/** What a header `content-disposition` says, so that a browser stores the file under this name. */
export function attachment(name: string): string {
  return `attachment; filename*=UTF-8''${encodeRfc8187(name)}`
}

export function downloadHeaders(name: string): Record<string, string> {
  return {
    'content-type': 'application/octet-stream',
    'content-disposition': attachment(name),
    'content-security-policy': 'sandbox',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  }
}

/** Encodes a name for `filename*` (RFC 8187): every character that is not an attr-char is percent-encoded. */
function encodeRfc8187(name: string): string {
  return encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
