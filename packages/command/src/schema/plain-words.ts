import type { z } from 'zod';

/** A message that our schema supplied stays as it is. */
export function plainWords(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      if (/received undefined$/.test(issue.message)) return 'is missing';
      return /^Invalid input/.test(issue.message) ? `must be ${article(issue.expected)}` : issue.message;
    case 'unrecognized_keys':
      return `has no field ${issue.keys.map((key) => `'${key}'`).join(', ')}`;
    case 'invalid_value':
      return /^Invalid/.test(issue.message) ? `must be ${issue.values.map(String).join(' or ')}` : issue.message;
    case 'too_small':
      return /^Too small/.test(issue.message)
        ? `must be ${atLeast(issue)} ${issue.minimum}${unitOf(issue.origin)}`
        : issue.message;
    case 'too_big':
      return /^Too big/.test(issue.message)
        ? `must be ${atMost(issue)} ${issue.maximum}${unitOf(issue.origin)}`
        : issue.message;
    case 'invalid_union':
      return /^Invalid input/.test(issue.message) ? 'has none of the forms that it may have' : issue.message;
    default:
      return issue.message;
  }
}

function article(kind: string): string {
  if (kind === 'int') return 'a whole number';
  if (kind === 'array') return 'a list';
  if (kind === 'record') return 'an object';
  return `${/^[aeiou]/.test(kind) ? 'an' : 'a'} ${kind}`;
}

function atLeast({ inclusive }: { inclusive?: boolean }): string {
  return inclusive === true ? 'at least' : 'more than';
}

function atMost({ inclusive }: { inclusive?: boolean }): string {
  return inclusive === true ? 'at most' : 'less than';
}

function unitOf(origin: string): string {
  if (origin === 'array' || origin === 'set') return ' long';
  return origin === 'string' ? ' characters long' : '';
}
