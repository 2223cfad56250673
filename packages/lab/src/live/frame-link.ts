export type FrameHandler = (bytes: Uint8Array, offset: number, length: number) => void;

export interface FrameLink {
  readonly description: string;
  readonly unknownPeers: number;
  readonly errors: number;
  onFrame: FrameHandler;
  onFrames: () => void;
  readonly address?: FrameHandler;
  /** Takes a frame; the bytes are its own until {@link flush} returns true. */
  send(frame: Uint8Array): void;
  /** False: the system has not taken all of it. */
  flush(): boolean;
  close(): Promise<void>;
}
