// `name=value,…` with values that are percent-encoded, as OpenTelemetry's variables have lists.

export function keyValues(text: string | undefined): Record<string, string> {
  const pairs = (text ?? '').split(',').flatMap(pair => {
    const [, name, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? []
    return name === undefined ? [] : [[name, decoded(value!)] as const]
  })
  return Object.fromEntries(pairs)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
