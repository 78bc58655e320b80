const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** A number of bytes in a readable form: `0 B`, `1.5 MiB`. */
export function sizeText(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)))
  const amount = bytes / 1024 ** power
  return `${power === 0 ? amount : amount.toFixed(1)} ${UNITS[power]}`
}

const SIZE = /^(\d+(?:\.\d+)?) ?(?:([KMGT])(i?)B|B)?$/i

/** The bytes of `64 MiB`, `1.5GB` or `4096`; null if the text is no size. */
export function parseSize(text: string): number | null {
  const found = SIZE.exec(text.trim())
  if (!found) return null
  const [, amount, unit, isBinary] = found
  const power = unit === undefined ? 0 : 'KMGT'.indexOf(unit.toUpperCase()) + 1
  return Math.round(Number(amount) * (isBinary ? 1024 : 1000) ** power)
}
