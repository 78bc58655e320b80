// The parts of Confluence that the wiki agent uses: pages, the names of people, and attachments.

export { attach, download } from './confluence-attachments.ts'
export {
  briefOf,
  createdPage,
  createPage,
  examine,
  getPage,
  resultOf,
  searchPage,
  updatePage,
} from './confluence-pages.ts'
export { namesIn } from './confluence-users.ts'
