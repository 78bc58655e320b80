// The text of a page of Confluence in files: storage format where the file's name ends in .html or .xml, else Markdown.

import type { AgentContext } from '../../agent/define.ts'
import { readText } from '../../agent/entry.ts'
import { storageToMarkdown } from './storage-read.ts'
import { markdownToStorage } from './storage-write.ts'

/** Confluence refuses larger pages. */
const MOST = 5 * 1024 * 1024

const isStorage = (name: string) => /\.(html|xml)$/i.test(name)

/** What a file of that name holds of a page. */
export async function pageText(storage: string, name: string): Promise<string> {
  return isStorage(name) ? storage : storageToMarkdown(storage)
}

/** What a page is written with, from a file of the run or the workspace. */
export async function readStorage(context: AgentContext<unknown>, file: string): Promise<string> {
  const text = await readText(context, file, MOST)
  return isStorage(file) ? text : markdownToStorage(text)
}
