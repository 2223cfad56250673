/** What the TCP driver needs of a TCP connection: a socket live, a delayed pipe in tests. */

export interface ByteStream {
  onData: (bytes: Buffer) => void;
  /** Called once; nothing is received after it. */
  onClose: (error: Error) => void;
  /** Sends the pieces as one. Bytes must not change until they have been sent: `onSent`, or for good. */
  write(pieces: readonly Uint8Array[], onSent?: () => void): void;
  /** Stops and continues `onData`: backpressure. */
  pause(): void;
  resume(): void;
  /** Ends the connection at once. `onClose` is not called for it. */
  destroy(): void;
}
