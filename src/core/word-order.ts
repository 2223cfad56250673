/** How this machine orders the halves of 64-bit numbers in memory. */

/** Which of the two 32-bit elements over a 64-bit one is its low half, 0 or 1. */
export const LOW_HALF: number = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1 ? 0 : 1;
