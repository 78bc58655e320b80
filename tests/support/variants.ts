// How a secret may stand in a log, to look for it where it must not be.

/**
 * Every form that `value` may take in a log: raw, trimmed, each line of a longer text, JSON, URL encoding and base64.
 */
export function variantsOf(value: string): Set<string> {
  const raw = new Set([value, value.trim(), ...pathOf(value)])
  const found = new Set<string>()
  for (const plain of raw) {
    const json = JSON.stringify(plain).slice(1, -1)
    found.add(plain).add(json).add(JSON.stringify(json).slice(1, -1))
    for (const encoded of urlVariants(plain)) found.add(encoded)
    found.add(Buffer.from(plain).toString('hex')).add(htmlOf(plain))
    for (const encoded of base64Variants(plain)) {
      found.add(encoded).add(encoded.replaceAll('+', '-').replaceAll('/', '_')).add(encodeURIComponent(encoded))
    }
  }
  for (const line of value.split(/\r?\n/).map(line => line.trim())) {
    // Armour lines (`-----BEGIN …`) are not secret, nor are the braces of a JSON document.
    if (line.length >= 8 && !line.startsWith('-----')) found.add(line).add(JSON.stringify(line).slice(1, -1))
  }
  return found
}

/**
 * The path of a secret URL, such as that of a webhook, and its secret part. A server may repeat only these in its
 * reply.
 */
function pathOf(value: string): string[] {
  const url = /^https?:\/\//i.test(value.trim()) ? URL.parse(value.trim()) : null
  const paths = url ? [url.pathname, url.pathname + url.search, ...url.pathname.split('/')] : []
  return paths.filter(path => path.length >= 16)
}

function urlVariants(plain: string): string[] {
  const wellFormed = plain.toWellFormed()
  const component = encodeURIComponent(wellFormed)
  const form = new URLSearchParams([['', wellFormed]]).toString().slice(1)
  const upper = [component, form, encodeURI(wellFormed)]
  return [...upper, ...upper.map(text => text.replace(/%[0-9A-F]{2}/g, code => code.toLowerCase()))]
}

/**
 * The base64 characters that depend only on `plain`, for each of the three offsets that it can have in a longer text.
 */
function base64Variants(plain: string): string[] {
  const bytes = Buffer.from(plain)
  return [0, 1, 2].map(offset => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
    return encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6))
  })
}

const htmlOf = (plain: string): string => plain.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
