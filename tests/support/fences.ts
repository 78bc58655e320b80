// The pieces of code in the documents, which tests run as readers do.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '../..')

export interface Fence {
  language: string
  /** The words after the language. */
  words: string[]
  text: string
  /** The heading above it, without its `#`. */
  heading: string
}

/** A fence that begins so carries no word, because it is the first thing that a reader copies. */
export const INSTALLS = 'npm install --global bun && '

export const readDocument = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

export function fencesOf(document: string): Fence[] {
  let heading = ''
  const fences: Fence[] = []
  for (const found of readDocument(document).matchAll(
    /^#+ (?<title>.*)$|^```(?<language>\S*) ?(?<words>.*)\n(?<text>[\s\S]*?)^```$/gm,
  )) {
    const { title, language, words, text } = found.groups as Record<string, string | undefined>
    if (title === undefined)
      fences.push({ language: language!, words: words!.split(' ').filter(Boolean), text: text!, heading })
    else heading = title
  }
  return fences
}
