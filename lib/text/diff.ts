// What changed between two texts, line by line.

export interface Change {
  kind: 'same' | 'old' | 'new'
  text: string
}

/** Texts whose lengths multiply to more are shown as removed and added as a whole, because comparing them takes too long. */
const MOST_CELLS = 4_000_000

export function diffLines(before: string, after: string): Change[] {
  const [old, fresh] = [linesOf(before), linesOf(after)]
  let head = 0
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head++
  let tail = 0
  while (tail < old.length - head && tail < fresh.length - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail++
  const as = (kind: Change['kind']) => (text: string) => ({ kind, text })
  return [
    ...old.slice(0, head).map(as('same')),
    ...middle(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail)),
    ...old.slice(old.length - tail).map(as('same')),
  ]
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))

/** The longest common subsequence, from a table of its lengths. */
function middle(old: string[], fresh: string[]): Change[] {
  const width = fresh.length + 1
  if (old.length * fresh.length > MOST_CELLS) {
    return [
      ...old.map(text => ({ kind: 'old' as const, text })),
      ...fresh.map(text => ({ kind: 'new' as const, text })),
    ]
  }
  const lengths = new Uint32Array((old.length + 1) * width)
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = fresh.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        old[i] === fresh[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!)
    }
  }
  const changes: Change[] = []
  let [i, j] = [0, 0]
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      changes.push({ kind: 'same', text: old[i++]! })
      j++
    } else if (i < old.length && (j === fresh.length || lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!)) {
      changes.push({ kind: 'old', text: old[i++]! })
    } else changes.push({ kind: 'new', text: fresh[j++]! })
  }
  return changes
}

/** Only the changes, each with `around` lines before and after. Null stands for lines that are left out. */
export function excerpt(changes: readonly Change[], around = 3): (Change | null)[] {
  const near = changes.map((_, index) =>
    changes.slice(Math.max(0, index - around), index + around + 1).some(({ kind }) => kind !== 'same'),
  )
  const kept: (Change | null)[] = []
  for (const [index, change] of changes.entries()) {
    if (near[index]) kept.push(change)
    else if (kept.at(-1) !== null) kept.push(null)
  }
  return kept
}
