import type { StandardSchema } from './schema.js';

export type Fields = Readonly<Record<string, unknown>>;

export function shape<T>(what: string, fits: (value: Fields) => boolean): StandardSchema<T> {
  return {
    '~standard': {
      version: 1,
      vendor: 'rocev2',
      validate: (value) =>
        typeof value === 'object' && value !== null && fits(value as Fields)
          ? { value: value as T }
          : { issues: [{ message: `it is no ${what}` }] },
    },
  };
}

export function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Whether a value is a number of 64 bits as JSON carries it: decimal digits. */
export function isDecimal(value: unknown): boolean {
  return typeof value === 'string' && /^\d{1,20}$/.test(value);
}
