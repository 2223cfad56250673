/** Path MTUs of InfiniBand (IBTA vol. 1 §9.7). */

/** In bytes, ascending; the wire and verbs number them 1..5. */
export const PATH_MTUS = [256, 512, 1024, 2048, 4096] as const;
export type PathMtu = (typeof PATH_MTUS)[number];
