/**
 * An emulated guest on a shared machine can stand still for longer than the usual ACK timeout bears: eight times 67 ms. Both tools get eight times 0.54 s,
 * by an option that they spell alike.
 */
export const PATIENCE = ['-u', '17'] as const;
