// The exports of lib/vendors/atlassian: calls of an Atlassian site, the issues of Jira, and the texts of Jira and
// Confluence as Markdown.

export { adfToMarkdown } from './adf-read.ts'
export { type AdfNode, markdownToAdf } from './adf-write.ts'
export { type IssueDraft, keysById, readKnownIssues, readNewIssues } from './issues-file.ts'
export * as jira from './jira.ts'
export { type AtlassianContext, AtlassianSettings, atlassian, siteOf } from './site.ts'
export { storageToMarkdown } from './storage-read.ts'
export { markdownToStorage } from './storage-write.ts'
