// The terms of three characters by which the index finds a text. For each of them FTS5 goes through all runs that have it,
// and of a common one these are nearly all. So it is asked for the rarest ones only (measured among a million runs: 1 ms
// instead of 55 ms for the number of a ticket). A run that has them need not have the text: who asks looks at its text, too.

/** The number of characters of a term, and of the shortest text that the index finds. */
export const TERM = 3
/** With more of them FTS5 finds fewer runs without the text, and takes longer for each run with it. */
const ASKED = 3

/** Whether a run that has all terms of a text has the text. */
export const isTerm = (text: string): boolean => Array.from(text).length === TERM

/** The terms of `text` that are the rarest in `sample`, which is a part of what the index has. */
export function rarestTerms(text: string, sample: string): string[] {
  const characters = Array.from(text)
  const terms = new Set(characters.slice(TERM - 1).map((_, at) => characters.slice(at, at + TERM).join('')))
  if (terms.size <= ASKED) return [...terms]
  return [...terms]
    .map(term => ({ term, times: timesIn(sample, term) }))
    .sort((one, other) => one.times - other.times)
    .slice(0, ASKED)
    .map(({ term }) => term)
}

function timesIn(sample: string, term: string): number {
  let times = 0
  for (let at = sample.indexOf(term); at !== -1; at = sample.indexOf(term, at + 1)) times++
  return times
}
