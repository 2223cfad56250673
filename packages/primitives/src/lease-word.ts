/**
 * The word of a lock: token, whether it is held, and a number that its holder changes to show that it is alive.
 *
 *     token 53   held 1   beat 10
 *
 * Who acquires the lock raises the token by one in the same CMP_SWAP. So a token is given out once, and later holders
 * have greater ones.
 */

const BEAT_BITS = 10n;
const HELD = 1n << BEAT_BITS;
const TOKEN_SHIFT = BEAT_BITS + 1n;

/** A word repeats after this many of them. */
export const BEATS = 1 << Number(BEAT_BITS);

export function freeWord(token: bigint): bigint {
  return token << TOKEN_SHIFT;
}

export function heldWord(token: bigint): bigint {
  return (token << TOKEN_SHIFT) | HELD;
}

export function nextBeat(word: bigint): bigint {
  const beat = (word + 1n) & (HELD - 1n);
  return (word & ~(HELD - 1n)) | beat;
}

export function tokenOf(word: bigint): bigint {
  return word >> TOKEN_SHIFT;
}

export function isHeld(word: bigint): boolean {
  return (word & HELD) !== 0n;
}
