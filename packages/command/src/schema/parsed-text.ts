import { RoceError } from 'rocev2/internal/core';
import { z } from 'zod';

/**
 * A schema of the text that `parse` accepts, as what it makes of it; what it refuses by a RoceError becomes an issue
 * with that message.
 */
export function parsedText<T>(parse: (text: string) => T) {
  return z.string().transform((text, context): T => parseOrIssue(parse, text, context));
}

export function parseOrIssue<T>(parse: (text: string) => T, text: string, context: z.core.$RefinementCtx): T {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof RoceError)) throw error;
    context.addIssue({ code: 'custom', message: error.message });
    return z.NEVER;
  }
}
