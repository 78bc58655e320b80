// The names that fields and types of team.yml have elsewhere, so that a mistake can name what was meant.

import type { OtherNames } from '../../text/spelling.ts'

export const OTHER_FIELDS: OtherNames = {
  phases: ['steps', 'jobs', 'tasks', 'stages', 'nodes'],
  inputs: ['params', 'parameters', 'arguments', 'args', 'with', 'variables', 'vars'],
  outputs: ['returns', 'results'],
  name: ['id'],
  depends_on: ['needs', 'after', 'requires', 'dependencies', 'dependsOn'],
  when: ['if', 'only', 'condition', 'unless'],
  on_failure: ['continue-on-error', 'continue_on_error', 'allow_failure', 'ignore_errors'],
  on_item_failure: ['fail-fast', 'fail_fast'],
  retry: ['retries', 'max_attempts'],
  repeat: ['poll', 'repeat_until', 'wait_for'],
  limit: ['rate_limit', 'rate-limit', 'rate', 'throttle', 'max_per_second'],
  until: ['while', 'unless'],
  timeout: ['timeout-minutes', 'timeout_minutes', 'timeout_seconds'],
  agent: ['image', 'plugin', 'runs-on'],
  action: ['operation', 'method'],
  team: ['uses', 'template', 'workflow', 'call'],
  items: ['matrix', 'for_each', 'foreach', 'with_items', 'loop', 'each', 'over'],
  concurrency: ['max-parallel', 'max_parallel', 'parallel', 'parallelism'],
  commands: ['steps', 'script', 'scripts', 'run', 'command', 'cmd', 'shell'],
  run: ['script', 'command', 'cmd', 'shell', 'bash'],
  env: ['environment'],
  review: ['approval', 'approve', 'manual'],
  choices: ['options', 'enum', 'values'],
}

export const OTHER_TYPES: OtherNames = {
  string: ['text', 'str'],
  number: ['integer', 'int', 'float', 'double', 'decimal'],
  boolean: ['bool', 'flag', 'checkbox'],
  list: ['array', 'sequence'],
  object: ['map', 'mapping', 'dict', 'json'],
  file: ['path'],
}
