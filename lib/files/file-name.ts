// Which file names are safe, whoever chose them. Pure.

const SEGMENT = /^[\p{L}\p{N}_.][\p{L}\p{N}\p{M} _.,;@+=~()[\]#&'!%$-]*$/u
/** Maximum length of a path segment. File systems allow 255 bytes; the difference leaves room for a suffix. */
export const SEGMENT_BYTES = 200

export function isSafeSegment(segment: string): boolean {
  return segment !== '.' && segment !== '..' && SEGMENT.test(segment) && Buffer.byteLength(segment) <= SEGMENT_BYTES
}

/**
 * Whether `name` can be used for a file in one of our folders: segments of letters, digits and common punctuation,
 * joined by `/`.
 */
export function isSafeName(name: string): boolean {
  return Buffer.byteLength(name) <= 1_000 && name.split('/').every(isSafeSegment)
}
