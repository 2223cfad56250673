/** Parameters after the `?` of a backend: `name=value` joined by `&`, as in a URI. */

import { RoceError } from 'rocev2/internal/core';

/**
 * Reads them; a name without `=` has an empty value. Throws ERR_ROCE_MALFORMED for a `%` without a valid code, and
 * ERR_ROCE_CONFLICT for a repeated name.
 */
export function backendParameters(query: string | undefined): Record<string, string> {
  const found = new Map<string, string>();
  for (const parameter of query?.split('&') ?? []) {
    const [name, ...value] = parameter.split('=');
    if (found.has(name)) throw new RoceError('ERR_ROCE_CONFLICT', `'${name}' is there twice`, `'${query}'`);
    found.set(name, decoded(value.join('=')));
  }
  return Object.fromEntries(found);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new RoceError('ERR_ROCE_MALFORMED', `'${text}' has a % that begins no code`, 'write %25 for %', { cause });
  }
}
