/** What a live switch is plugged into: a way for Ethernet frames, one end of a link. */

/** Takes a frame, valid during the call. */
export type FrameHandler = (bytes: Uint8Array, offset: number, length: number) => void;

/** One end of a link. */
export interface FrameLink {
  /** For people: `127.0.0.1:5001`, `eth0`. */
  readonly description: string;
  /** Frames from somebody else than the link's peer, which were dropped. */
  readonly strangers: number;
  /** Frames that the system refused, or that had nobody to go to. */
  readonly errors: number;
  /** Called for each frame that has come. */
  onFrame: FrameHandler;
  /** Called behind the frames that came together. */
  onFrames: () => void;
  /** Makes a frame that is about to leave what it has to be on this link, in place and at its length. */
  readonly address?: FrameHandler;
  /** Takes a frame; the bytes are its own until {@link flush} returns true. */
  send(frame: Uint8Array): void;
  /** Hands over what was given to {@link send}. False: the system has not taken all of it. */
  flush(): boolean;
  /** Ends it; nothing is called afterwards. */
  close(): Promise<void>;
}
