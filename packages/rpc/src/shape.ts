/** Schemas of the library's own services, whose values are plain objects: a description, and a function that says whether a value fits. */

import type { StandardSchema } from './schema.js';

/** The fields of a value that is not checked yet. */
export type Fields = Readonly<Record<string, unknown>>;

/** The schema of objects that fit. `what` is for the message: `it is no ${what}`. */
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

/** Whether a value is a whole number from 0 on. */
export function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Whether a value is a number of 64 bits as JSON carries it: decimal digits. */
export function isDecimal(value: unknown): boolean {
  return typeof value === 'string' && /^\d{1,20}$/.test(value);
}
