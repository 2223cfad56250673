/** The three parts of the experiment: A SENDs to B, A WRITEs to B, B READs from A. In all of them the data goes from A to B. */

/** The names, as `--ops` takes them. */
export const LIVELOCK_OPS = ['send', 'write', 'read'] as const;
/** One of {@link LIVELOCK_OPS}. */
export type LivelockOp = (typeof LIVELOCK_OPS)[number];
