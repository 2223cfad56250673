/** Counters of a server. */

/** What all sessions of a server count. */
export interface SkServerCounters {
  /** Requests carried out on a disk. */
  executed: number;
  /** Answers given from a slot's memory. */
  cachedReplies: number;
  /** Requests that came again while they were being executed. */
  attached: number;
  /** Writes whose data was not what the client had checked. */
  crcMismatches: number;
  /** Requests whose sequence number made no sense: their sessions were lost. */
  badSequences: number;
  /** Connections closed because their session went on over a newer one. */
  fenced: number;
  /** Connections refused or closed for what they sent. */
  protocolErrors: number;
  /** Sessions refused because they are for another disk. */
  wrongDisks: number;
  /** Sessions ended because another client has taken over the lease of theirs. */
  takenOver: number;
  /** Sessions refused because another client had the lease. */
  leased: number;
}
