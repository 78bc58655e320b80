// The parts of Jira that the issues agent uses: reads, and writes that can be found again.

export { attach, attached, download, withAttachments } from './jira-attachments.ts'
export { created } from './jira-created.ts'
export {
  AttachmentData,
  AttachmentsData,
  CommentData,
  CommentsData,
  commentResult,
  IssueData,
  IssuesData,
  issuesResult,
  MoveData,
  moveResult,
  TreeData,
  WrittenData,
} from './jira-data.ts'
export {
  briefOf,
  commentsPage,
  examine,
  getIssue,
  type Issue,
  type JiraComment,
  needing,
  plainDocument,
  searchPage,
  treeOf,
  webAddress,
} from './jira-read.ts'
export {
  comment,
  commented,
  create,
  edit,
  fieldsFor,
  type Known,
  mainFields,
  move,
  moved,
  ownFields,
  readBack,
  readWritten,
} from './jira-write.ts'
