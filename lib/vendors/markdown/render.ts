// Writes Markdown as the HTML of notes and as the text of chat messages, with Bun's parser. Text from people stays text:
// raw HTML is shown as it was written, and a link keeps its target only if it leads to a page, an address or a number.

type Render = Parameters<typeof Bun.markdown.render>[1] & object

const FOR_PEOPLE = /^(https?|mailto|tel):/i
const OPTIONS = { autolinks: true } as const

/** HTML with the elements that every editor of rich text knows. A line break in a paragraph stays a line break. */
export function markdownToHtml(text: string): string {
  const element = (name: string) => (children: string) => `<${name}>${children}</${name}>`
  const lines = (children: string) => children.trim().replaceAll('\n', '<br>')
  return Bun.markdown.render(
    text,
    {
      text: plain => Bun.escapeHTML(plain),
      html: children => `<p>${lines(children)}</p>`,
      paragraph: children => `<p>${lines(children)}</p>`,
      heading: (children, { level }) => `<h${level}>${children}</h${level}>`,
      strong: element('strong'),
      emphasis: element('em'),
      strikethrough: element('s'),
      codespan: element('code'),
      code: children => `<pre><code>${children}</code></pre>`,
      blockquote: element('blockquote'),
      list: (children, { ordered, start = 1 }) =>
        ordered ? `<ol${start === 1 ? '' : ` start="${start}"`}>${children}</ol>` : `<ul>${children}</ul>`,
      listItem: (children, { checked }) => `<li>${boxOf(checked)}${children}</li>`,
      hr: () => '<hr>',
      link: (children, { href }) =>
        FOR_PEOPLE.test(href) ? `<a href="${Bun.escapeHTML(href)}">${children}</a>` : children,
      image: (children, { src }) =>
        FOR_PEOPLE.test(src) ? `<a href="${Bun.escapeHTML(src)}">${children || Bun.escapeHTML(src)}</a>` : children,
      table: element('table'),
      thead: element('thead'),
      tbody: element('tbody'),
      tr: element('tr'),
      th: element('th'),
      td: element('td'),
    },
    OPTIONS,
  )
}

/** How a chat writes marks. */
export interface ChatMarks {
  /** Makes a text from people harmless. */
  text(plain: string): string
  strong: string
  emphasis: string
  /** Empty when the chat has no such mark. */
  strikethrough: string
  code: string
  block: string
}

/**
 * Text for a chat. The target of a link stands after its words, so that no words can hide where the link leads; headings
 * are strong, and a table has a line for each row.
 */
export function markdownToChat(text: string, marks: ChatMarks): string {
  const around = (mark: string) => (children: string) => (children.trim() ? `${mark}${children}${mark}` : children)
  const block = (children: string) => `${children.trim()}\n\n`
  const target = (words: string, url: string) => {
    const shown = marks.text(url)
    if (!FOR_PEOPLE.test(url) || words === shown) return words
    return words.trim() ? `${words} (${shown})` : shown
  }
  const row = (children: string) => `${children.replace(/ \| $/, '')}\n`
  const cell = (children: string) => `${children} | `
  const render: Render = {
    text: plain => marks.text(plain),
    html: block,
    paragraph: block,
    heading: children => block(around(marks.strong)(children)),
    strong: around(marks.strong),
    emphasis: around(marks.emphasis),
    strikethrough: around(marks.strikethrough),
    codespan: around(marks.code),
    code: children =>
      marks.block ? `${marks.block}\n${children.replace(/\n$/, '')}\n${marks.block}\n\n` : block(children),
    blockquote: children => `${children.trim().replace(/^/gm, '> ')}\n\n`,
    list: (children, { depth }) => (depth > 0 ? `\n${children.trimEnd()}` : `${children.trimEnd()}\n\n`),
    listItem: (children, { ordered, start = 1, index, checked, depth }) => {
      const bullet = ordered ? `${start + index}.` : '•'
      const lines = children.trim().replace(/\n{2,}/g, '\n')
      return `${'    '.repeat(depth)}${bullet} ${boxOf(checked)}${lines}\n`
    },
    hr: () => '———\n\n',
    link: (children, { href }) => target(children, href),
    image: (children, { src }) => target(children, src),
    table: block,
    thead: children => children,
    tbody: children => children,
    tr: row,
    th: children => cell(around(marks.strong)(children)),
    td: cell,
  }
  return Bun.markdown.render(text, render, OPTIONS).trim()
}

function boxOf(checked: boolean | undefined): string {
  return checked === undefined ? '' : checked ? '☑ ' : '☐ '
}
