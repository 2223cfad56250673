export interface ByteStream {
  onData: (bytes: Buffer) => void;
  onClose: (error: Error) => void;
  /** Bytes must not change until they have been sent (`onSent`), or ever. */
  write(pieces: readonly Uint8Array[], onSent?: () => void): void;
  pause(): void;
  resume(): void;
  /** `onClose` is not called for it. */
  destroy(): void;
}
