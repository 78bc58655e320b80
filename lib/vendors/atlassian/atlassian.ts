// The exports of lib/vendors/atlassian: the settings of an Atlassian site, the issues of Jira, the pages of Confluence, and
// the texts of both as Markdown.

export { adfToMarkdown } from './adf-read.ts'
export { type AdfNode, markdownToAdf } from './adf-write.ts'
export { attachmentFields } from './attachments.ts'
export * as confluence from './confluence.ts'
export { type IssueDraft, keysById, readKnownIssues, readNewIssues } from './issues-file.ts'
export * as jira from './jira.ts'
export { AtlassianSettings, apiAddress, problemsOfSite } from './settings.ts'
export type { AtlassianContext } from './site.ts'
export { storageToMarkdown } from './storage-read.ts'
export { markdownToStorage } from './storage-write.ts'
