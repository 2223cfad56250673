/** Counters of a server. */

/** Counters of all sessions of a server. */
export interface SkServerCounters {
  /** Requests carried out on a disk. */
  executed: number;
  /** Answers given from a slot's memory. */
  cachedReplies: number;
  /** Requests that were repeated while they were being executed. */
  attached: number;
  /** Writes whose data did not match the client's checksum. */
  crcMismatches: number;
  /** Requests with an invalid sequence number: their sessions were lost. */
  badSequences: number;
  /** Connections closed because their session continued over a newer one. */
  fenced: number;
  /** Connections refused or closed because they sent invalid messages. */
  protocolErrors: number;
  /** Sessions refused because they are for another disk. */
  wrongDisks: number;
  /** Sessions ended because another client has taken over their lease. */
  takenOver: number;
  /** Sessions refused because another client had the lease. */
  leased: number;
}
