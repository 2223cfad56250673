import { RoceError } from 'rocev2/internal/core';
import { z } from 'zod';

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
