const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** A number of bytes in a readable form: `0 B`, `1.5 MiB`. */
export function sizeText(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)))
  const amount = bytes / 1024 ** power
  return `${power === 0 ? amount : amount.toFixed(1)} ${UNITS[power]}`
}
