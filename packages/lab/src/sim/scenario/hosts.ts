import { RoceError } from 'rocev2/internal/core';

export function hostsOf(selection: string | readonly string[], known: readonly string[], field: string): string[] {
  const parts = typeof selection === 'string' ? [selection] : selection;
  return parts.flatMap((part) => {
    const [first, last = first] = part.split('..').map((name) => known.indexOf(name));
    if (first < 0 || last < first) {
      const range = `${known[0]} to ${known[known.length - 1]}`;
      throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `${field}: '${part}' is not there`, `hosts are ${range}`);
    }
    return known.slice(first, last + 1);
  });
}
