// Markdown as people and models write it, for properties of the converters: every construct in every place where it may
// stand, and many in which it may not.

import fc from 'fast-check'

const letters = ['\\<', ...' !"#$%&\'()*+,-./0123456789:;=>?@[\\]^_`{|}~abcxyzAé🎉']
/** Any text, with much of what looks like Markdown. Raw HTML is text only once, because a link in it is found later. */
export const words = fc.array(fc.constantFrom(...letters), { minLength: 1, maxLength: 12 }).map(all => all.join(''))
const word = words.map(text => text.replace(/[[\]<>`\\\n|]/g, '').trim() || 'x')

const inline = fc.oneof(
  { weight: 4, arbitrary: words },
  words.map(text => `**${text.trim() || 'x'}**`),
  word.map(text => `[${text}](https://a.example/${encodeURIComponent(text)})`),
  words.map(text => `\`${text.replaceAll('`', '') || 'x'}\``),
)

const rare = fc.oneof(
  inline,
  word.map(text => `~~${text}~~`),
  word.map(text => `***${text}** and* \`code\``),
  word.map(text => `**[${text} \`code\` ![i](https://a.example/i.png)](https://a.example)**`),
  word.map(text => `![${text}](https://a.example/i.png)`),
  fc.constantFrom(
    '![](img/c.png)',
    '[](https://a.example)',
    '[@Ada](accountid:5b1)',
    '**[@Ada](accountid:5b1)**',
    '[](accountid:5b1)',
    '[page](page:DOCS/A%20B)',
    'a\\\nb',
    'a<br>b',
    '<b>x</b>',
    'https://a.example/x_y',
    '&nbsp;',
    '\u00a0',
  ),
)

const paragraph = fc.array(inline, { minLength: 1, maxLength: 5 }).map(parts => parts.join(' '))
const block = fc.oneof(
  paragraph,
  paragraph.map(text => `## ${text}`),
  fc.array(paragraph, { minLength: 1, maxLength: 3 }).map(items => items.map(item => `- ${item}`).join('\n')),
  paragraph.map(text => `> ${text}`),
  fc.array(words, { minLength: 1, maxLength: 4 }).map(lines => `~~~\n${lines.join('\n').replaceAll('~', '-')}\n~~~`),
)
const joined = (blocks: string[]) => blocks.join('\n\n')

/** Documents that come back as the same document when they are read and written again. */
export const documents = fc.array(block, { minLength: 1, maxLength: 5 }).map(joined)

const within = (prefix: string, rest: string) => (text: string) =>
  text
    .split('\n')
    .map((line, at) => (at === 0 ? prefix : line && rest) + line)
    .join('\n')

/** Documents with everything in everything. */
export const anyDocuments = fc.letrec<{ block: string; blocks: string }>(tie => ({
  block: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'markdown' },
    fc.array(rare, { minLength: 1, maxLength: 4 }).map(parts => parts.join(' ')),
    fc.array(rare, { maxLength: 2 }).map(parts => `# ${parts.join(' ')}`),
    fc.constantFrom('---', '```\n```', '```ts\nlet a\n```', '    indented', '<div>raw</div>', '<!-- no -->', '-', '> '),
    fc
      .array(
        fc.array(
          rare.map(text => text.replace(/[|\n]/g, ' ')),
          { minLength: 2, maxLength: 2 },
        ),
        { minLength: 1, maxLength: 3 },
      )
      .map(([head, ...rows]) => [head!, ['-', ':-:'], ...rows].map(row => `| ${row.join(' | ')} |`).join('\n')),
    fc.constant('| | |\n| - | - |\n| 1 | |'),
    fc
      .tuple(
        fc.constantFrom('- ', '1. ', '0. ', '7) ', '- [ ] ', '- [x] '),
        fc.array(tie('blocks'), { minLength: 1, maxLength: 3 }),
      )
      .map(([mark, items]) => items.map(within(mark, '      ')).join('\n')),
    tie('blocks').map(text => within('> ', '> ')(text)),
  ),
  blocks: fc.array(tie('block'), { minLength: 1, maxLength: 3, depthIdentifier: 'markdown' }).map(joined),
})).blocks
