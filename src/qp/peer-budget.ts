/**
 * How many packets a queue pair may have in flight. The peer's socket can hold so many, and all queue pairs to it share that; but each peer queue
 * pair tells the number for itself. A number belongs to the queue pair that was told it: what others claim, small or large, changes nobody
 * else's window. All that others can do is take part, and then each has its fair share.
 */

/** The queue pairs that send to one socket. */
export interface Sharers {
  /** How many there are: connected, and not in ERR. */
  count: number;
}

/** What one queue pair may have in flight. */
export interface PeerBudget {
  /** Packets that the peer's socket can hold, as its queue pair told: all of it would be ours if we were alone. */
  readonly limitPackets: number;
  /** With whom it is shared. */
  readonly sharers: Sharers;
}

/**
 * Packets one queue pair may have in flight: its share of what the peer's socket can hold. Two at least, so that one is sent while the other is
 * answered, as long as that fits into twice the limit, the whole of the peer's buffer; with more queue pairs one.
 */
export function windowPackets({ limitPackets, sharers }: PeerBudget): number {
  const { count } = sharers;
  return Math.max(count <= limitPackets ? 2 : 1, Math.floor(limitPackets / Math.max(1, count)));
}
