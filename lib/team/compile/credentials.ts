// Passwords and tokens that are written out in a team's file, as far as their form or the word before them shows it.

import type { Scalar } from '../yaml/yaml.ts'

const WORD = '(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|API_?KEY|PRIVATE_?KEY)'

/** Forms that nothing but a credential has. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/, 'a private key'],
  [/\b(?:ghp|gho|ghs|ghu)_[A-Za-z0-9]{36}\b|\bgithub_pat_\w{40,}/, 'a token of GitHub'],
  [/\bglpat-[\w-]{20,}/, 'a token of GitLab'],
  [/\bxox[abprs]-[\w-]{10,}/, 'a token of Slack'],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/, 'a key of AWS'],
  [/\bsk-[A-Za-z0-9_-]{20,}/, 'a key of a model'],
  [/\bBearer +[A-Za-z0-9._~+/-]{16,}/, 'a token'],
  [/[a-z]:\/\/[^\s/:@${}'"]+:[^\s/@${}'"]+@/, 'a password'],
]

/** In a command line: `TOKEN=…`, `--password …`. */
const IN_COMMAND = new RegExp(
  `(?:\\b\\w*${WORD}=|--(?:password|passwd|token|secret|api-key)[= ])['"]?(?![$<{/.-])[^\\s$'"\`;|&)]{8,}`,
  'i',
)
const NAME = new RegExp(`(?:^|[_.-])${WORD}$`, 'i')

/** What is written out in a value; null when it is nothing of the kind. */
export function credentialIn({ value, path }: Scalar): string | null {
  if (typeof value !== 'string') return null
  const form = FORMS.find(([pattern]) => pattern.test(value))
  if (form) return form[1]
  const [above, name] = path.split('/').slice(-2)
  if (name === 'run') return IN_COMMAND.test(value) ? 'a password or a token' : null
  const isSecret = (above === 'env' || above === 'headers') && NAME.test(name!)
  return isSecret && value.length >= 8 && !/\{\{|^[/~.]|\s/.test(value) ? 'a password or a token' : null
}
