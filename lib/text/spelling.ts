// Finds the known name that somebody probably meant when the name that they wrote does not exist.

/** By known name: the names that other systems have for the same thing. */
export type OtherNames = Readonly<Record<string, readonly string[]>>

/**
 * ` (did you mean `x`?)` for the one of `known` that has this name elsewhere, or else for the nearest in spelling. An
 * empty text when there is none.
 */
export function didYouMean(word: string, known: Iterable<string>, others: OtherNames = {}): string {
  const name = nameMeant(word, known, others)
  return name === undefined ? '' : ` (did you mean \`${name}\`?)`
}

/** The one of `known` that `word` is, or that was probably meant by it. */
export function nameMeant(word: string, known: Iterable<string>, others: OtherNames = {}): string | undefined {
  const names = [...known]
  const same = names.find(name => Object.hasOwn(others, name) && others[name]!.includes(word))
  if (same !== undefined) return same
  let best: string | undefined
  let least = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const name of names) {
    const distance = editDistance(word.toLowerCase(), name.toLowerCase(), least)
    if (distance < least) [best, least] = [name, distance]
  }
  return best
}

/** The number of letters to insert, delete, replace or swap with their neighbour; at most `bound`. */
function editDistance(a: string, b: string, bound: number): number {
  if (Math.abs(a.length - b.length) >= bound) return bound
  let older: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let least = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, older[j - 2]! + 1)
      row.push(least)
    }
    older = last
    last = row
  }
  return Math.min(last[b.length]!, bound)
}

/** `a, b and c`. */
export function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}
