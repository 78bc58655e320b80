// The exports of lib/vendors/markdown, for GitHub Flavored Markdown: parsing, printing, and the functions with which
// readers of other formats build a tree.

export { parseMarkdown } from './parse.ts'
export { printMarkdown } from './print.ts'
export { type ChatMarks, markdownToChat, markdownToHtml } from './render.ts'
export * from './tree.ts'
