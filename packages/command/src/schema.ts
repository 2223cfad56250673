/** The entry @rocev2/command/schema: what schemas of documents are made of. It loads nothing of command lines. */

export { parsedText } from './schema/parsed-text.js';
export { plainWords } from './schema/plain-words.js';
export { rate, size, time } from './schema/quantities.js';
export { readRateControl } from './schema/written-rate-control.js';
export { readRecovery } from './schema/written-recovery.js';
