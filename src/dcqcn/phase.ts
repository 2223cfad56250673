/** The first event after the interval counts, at once. */
export const SINCE_LAST = 0;
/** Events count at the next tick of a timer, all of them as one. */
export const FREE_RUNNING = 1;
