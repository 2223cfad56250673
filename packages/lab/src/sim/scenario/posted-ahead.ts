/** Work requests of one flow: more would need larger queues than queue pairs have. */
export const POSTED_AHEAD_MAX = 16_384;
