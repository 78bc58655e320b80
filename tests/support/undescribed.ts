// Walks a document of schemas, and finds the properties that a reader is told nothing about.

/** What describes nothing itself: conditions, and values. */
const PASSED_OVER = ['if', 'default', 'enum', 'required', 'const']

interface Parameter {
  name: string
  description?: string
}

const silent = (parameters: Parameter[], path: string): string[] =>
  parameters.filter(({ description }) => !description).map(({ name }) => `${path}?${name}`)

/** The paths of all properties and parameters without a description. One that is a reference or a constant needs none. */
export function undescribed(schema: unknown, path = ''): string[] {
  if (Array.isArray(schema)) return schema.flatMap((each, at) => undescribed(each, `${path}/${at}`))
  if (typeof schema !== 'object' || schema === null) return []
  return Object.entries(schema).flatMap(([key, value]) => {
    if (PASSED_OVER.includes(key)) return []
    if (key === 'parameters') return silent(value as Parameter[], path)
    if (key !== 'properties') return undescribed(value, `${path}/${key}`)
    return Object.entries(value as Record<string, object | false>).flatMap(([name, property]) => {
      const says = property === false || ['description', '$ref', 'const'].some(word => word in property)
      return [...(says ? [] : [`${path}/${name}`]), ...undescribed(property, `${path}/${name}`)]
    })
  })
}
