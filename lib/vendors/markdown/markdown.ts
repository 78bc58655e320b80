// The door of Markdown (GitHub's flavour): its text as a tree, the tree as text, and what the readers of other formats
// build the tree with.

export { parseMarkdown } from './parse.ts'
export * from './tree.ts'
