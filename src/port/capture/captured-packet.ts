/** What the readers of captures deliver. */

/** Which packet of several that were captured as one. */
export interface TrainPlace {
  /** From 0. */
  readonly index: number;
  /** How many there are. 0: the capture does not show it. */
  readonly count: number;
}

/** A packet of a capture. */
export interface CapturedPacket {
  /** Nanoseconds since 1970; 0 where the file has no stamp for it. */
  readonly timestampNs: bigint;
  /** Number of the interface in the file, from 0. */
  readonly interfaceId: number;
  /** LINKTYPE of the interface. */
  readonly linkType: number;
  /** What was captured of the packet. */
  readonly bytes: Uint8Array;
  /** Larger than `bytes.length` when the capture cut the packet off. */
  readonly originalLength: number;
  /** Comment of the packet in the file. */
  readonly comment: string | undefined;
  /** Of a packet that was separated from others by {@link separated}. */
  readonly train?: TrainPlace;
}

/** Why and where reading ended before the end of the file. */
export interface CaptureDamage {
  /** Byte of the file where it cannot be read on. */
  readonly offset: number;
  /** For people. */
  readonly reason: string;
}

export interface CaptureParser {
  /** Bytes of the last piece that were read; the next piece begins behind them. */
  readonly consumed: number;
  readonly damage: CaptureDamage | undefined;
  packets(bytes: Uint8Array, isLast: boolean): Iterable<CapturedPacket>;
}
