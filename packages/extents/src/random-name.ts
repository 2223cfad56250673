import type { RandomSource } from 'rocev2/internal/core';

/** Eight hexadecimal digits for each word. */
export function randomName(random: RandomSource, words: number): string {
  return Array.from({ length: words }, () => random.u32().toString(16).padStart(8, '0')).join('');
}
