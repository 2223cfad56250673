/** The connection that the two sides of a queue pair use to learn of each other's end: TCP, or the connection manager. */
export interface ControlConnection {
  /** False once the peer has ended the connection, or is gone. */
  readonly isOpen: boolean;
  /** Resolves when the peer has ended the connection, or is gone. */
  readonly ended: Promise<void>;
  /** Ends it from this side. */
  close(): Promise<void>;
}
