/** How the two sides know of each other beside the queue pair: a TCP connection, or the connection manager. */
export interface PeerPresence {
  /** False once the peer has ended the connection, or is gone. */
  readonly isOpen: boolean;
  /** Resolves when the peer has ended the connection, or is gone. */
  readonly ended: Promise<void>;
  /** Ends it from this side. */
  close(): Promise<void>;
}
