/**
 * The three parts of the experiment: A SENDs to B, A WRITEs to B, B READs from A. In all of them the data goes from A
 * to B.
 */

/** The values of `--ops`. */
export const LIVELOCK_OPS = ['send', 'write', 'read'] as const;
/** One of {@link LIVELOCK_OPS}. */
export type LivelockOp = (typeof LIVELOCK_OPS)[number];
