import { libC } from '../../src/dgram-ext/libc.js';

/** Whether calls of the system's C library are possible. Without koffi, tests of what needs them are skipped. */
export const HAS_KOFFI = typeof libC() !== 'string';
