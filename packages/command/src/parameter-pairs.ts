import { RoceError } from 'rocev2/internal/core';

export function parameterPairs(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split(',').map((pair) => {
      const [key, value, ...rest] = pair.split('=').map((part) => part.trim());
      if (key !== '' && value !== undefined && rest.length === 0) return [key, value];
      throw new RoceError('ERR_ROCE_MALFORMED', `'${pair}' is not parameter=value`);
    }),
  );
}
