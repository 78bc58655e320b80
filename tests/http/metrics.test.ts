// The kinds of metrics: how many series one may have, what a renamed one is served as, and which texts labels may have.

import { expect, test } from 'bun:test'
import { Counter, Gauge, Histogram, metricsOptions } from '../../lib/http/metrics.ts'

const samplesOf = (text: string) => text.split('\n').filter(line => line !== '' && !line.startsWith('#'))

test('the first values of an open label are admitted until the process ends, and all later ones are other', () => {
  const counter = new Counter({ name: 'cadre_x_total', help: 'x.', open: ['agent'] }, [], 2)
  for (const agent of ['http', 'git', 'wiki', 'http', 'crm', 'wiki']) {
    counter.add(1, { agent, result: agent === 'crm' ? 'failed' : 'written' })
  }
  expect(samplesOf(counter.text())).toEqual([
    'cadre_x_total{agent="http",result="written"} 2',
    'cadre_x_total{agent="git",result="written"} 1',
    'cadre_x_total{agent="other",result="written"} 2',
    'cadre_x_total{agent="other",result="failed"} 1',
  ])
  // A label that the program lists never takes the place of one that it does not.
  counter.add(1, { agent: 'git', result: 'failed' })
  expect(counter.text()).toContain('{agent="git",result="failed"} 1\n')
})

test('a gauge joins what is `other`, as a sum or as it is told to', () => {
  const declared = { name: 'cadre_x', help: 'x.', open: ['realm'] }
  const queue = new Gauge(declared, 1)
  const oldest = new Gauge(declared, 1, Math.max)
  const at = (realm: string, value: number) => [{ realm }, value] as const
  const three = [at('a', 1), at('b', 5), at('c', 3)]
  expect(samplesOf(queue.text(three))).toEqual(['cadre_x{realm="a"} 1', 'cadre_x{realm="other"} 8'])
  expect(samplesOf(oldest.text(three))).toEqual(['cadre_x{realm="a"} 1', 'cadre_x{realm="other"} 5'])
  // What was admitted first keeps its place while it has no value.
  expect(samplesOf(queue.text([at('b', 2)]))).toEqual(['cadre_x{realm="other"} 2'])
  expect(samplesOf(queue.text(null))).toEqual([])
})

test('a histogram has as many series', () => {
  const histogram = new Histogram({ name: 'cadre_x_seconds', help: 'x.', open: ['team'] }, [1], 1)
  for (const team of ['@a/a', '@b/b', '@c/c']) histogram.observe(2, { team })
  expect(samplesOf(histogram.text()).filter(line => line.includes('_count'))).toEqual([
    'cadre_x_seconds_count{team="@a/a"} 1',
    'cadre_x_seconds_count{team="other"} 2',
  ])
})

test('a metric that was renamed is served under both names, of which the older one says so', () => {
  const gauge = new Gauge({ name: 'cadre_xs', help: 'Things.', was: 'cadre_x_count' })
  expect(gauge.text(3)).toBe(
    '# HELP cadre_xs Things.\n# TYPE cadre_xs gauge\ncadre_xs 3\n' +
      '# HELP cadre_x_count Renamed to cadre_xs. The next release has only that name.\n' +
      '# TYPE cadre_x_count gauge\ncadre_x_count 3\n',
  )
})

test('a label escapes what Prometheus reads as signs, and nothing else', () => {
  const gauge = new Gauge({ name: 'cadre_x', help: 'x.' })
  expect(samplesOf(gauge.text([[{ name: 'a"b\\c\nd\te' }, 1]]))).toEqual(['cadre_x{name="a\\"b\\\\c\\nd\te"} 1'])
})

test('the environment sets how many values are admitted, and whether teams are labels', () => {
  expect(metricsOptions({})).toEqual({ series: 200, teams: false })
  expect(metricsOptions({ CADRE_METRICS_SERIES: '5', CADRE_METRICS_TEAMS: '1' })).toEqual({ series: 5, teams: true })
  for (const CADRE_METRICS_SERIES of ['0', '-1', '1.5', 'many', '100001']) {
    expect(() => metricsOptions({ CADRE_METRICS_SERIES })).toThrow(
      `CADRE_METRICS_SERIES: expected a whole number from 1 to 100000, got ${CADRE_METRICS_SERIES}`,
    )
  }
})
