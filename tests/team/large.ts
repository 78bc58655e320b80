// Files that are large and odd in one way each. Written out they would fill the repository.

import { HEAD } from './load.ts'

export const LARGE: [title: string, text: string][] = [
  ['open brackets', '['.repeat(500_000)],
  ['wide lists', `phases: [${'a,'.repeat(60_000)}]`],
  ['open braces', '{a: '.repeat(200_000)],
  ['dashes', '- '.repeat(500_000)],
  ['question marks', '? '.repeat(500_000)],
  ['quotes', '"'.repeat(500_000)],
  ['colons', ': '.repeat(500_000)],
  ['aliases', '*a '.repeat(300_000)],
  ['anchors', '&a '.repeat(300_000)],
  ['commas', `[${','.repeat(1_000_000)}]`],
  ['keys', Array.from({ length: 90_000 }, (_, at) => `k${at}: 1`).join('\n')],
  ['items', `phases:\n${'- a\n'.repeat(250_000)}`],
  ['blank lines', '\n'.repeat(1_000_000)],
  ['documents', '---\n'.repeat(250_000)],
  ['comments', '#\n'.repeat(500_000)],
  ['a long text', `name: ${'x '.repeat(500_000)}`],
  ['a block', `name: |\n${' x\n'.repeat(300_000)}`],
  ['templates', `${HEAD}phases: [{ name: a, agent: chat, message: "${'{{'.repeat(200_000)}" }]`],
  ['expressions', `${HEAD}phases: [{ name: a, agent: chat, message: "${'{{1}}'.repeat(100_000)}" }]`],
  ['mistakes', `${HEAD}phases: [{ name: a, agent: chat, message: "${'{{x}}'.repeat(100_000)}" }]`],
  [
    'a thousand phases',
    `${HEAD}phases:\n${Array.from({ length: 1_000 }, (_, at) => `  - { name: p${at}, depends_on: [${at ? `p${at - 1}` : ''}], when: ${at ? "phases.p0.state == 'completed'" : 'true'}, agent: exec, commands: [{ name: c, run: x }] }`).join('\n')}`,
  ],
  ['unknown fields', `${HEAD}${Array.from({ length: 60_000 }, (_, at) => `k${at}: 1`).join('\n')}`],
]
