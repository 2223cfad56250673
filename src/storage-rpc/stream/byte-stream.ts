/** What the TCP driver needs of a TCP connection: a socket live, a delayed pipe in tests. */
export interface ByteStream {
  /** Takes what arrives, in order. */
  onData: (bytes: Buffer) => void;
  /** Called once; nothing is received after it. */
  onClose: (error: Error) => void;
  /** Sends the pieces as one. Bytes must not change until they have been sent: `onSent`, or for good. */
  write(pieces: readonly Uint8Array[], onSent?: () => void): void;
  /** Stops `onData`: backpressure. */
  pause(): void;
  /** Continues `onData`. */
  resume(): void;
  /** Ends the connection at once. `onClose` is not called for it. */
  destroy(): void;
}
