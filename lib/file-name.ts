// Which names files may have, whoever chose them. Pure.

const SEGMENT = /^[\p{L}\p{N}_.][\p{L}\p{N}\p{M} _.,;@+=~()[\]#&'!%$-]*$/u
/** File systems allow 255; the rest is room for a suffix. */
export const SEGMENT_BYTES = 200

export function isSafeSegment(segment: string): boolean {
  return segment !== '.' && segment !== '..' && SEGMENT.test(segment) && Buffer.byteLength(segment) <= SEGMENT_BYTES
}

/** Whether `name` can name a file in a folder of ours: segments of letters, digits and common marks, joined by `/`. */
export function isSafeName(name: string): boolean {
  return Buffer.byteLength(name) <= 1_000 && name.split('/').every(isSafeSegment)
}
