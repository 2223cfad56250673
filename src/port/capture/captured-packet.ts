/** What the readers of captures deliver. */

/** A packet of a capture. */
export interface CapturedPacket {
  /** Nanoseconds since 1970; 0 where the file has no stamp for it. */
  readonly timestampNs: bigint;
  /** Number of the interface in the file, from 0. */
  readonly interfaceId: number;
  /** LINKTYPE of the interface. */
  readonly linkType: number;
  /** The captured bytes of the packet. */
  readonly bytes: Uint8Array;
  /** Larger than `bytes.length` when the capture cut the packet off. */
  readonly originalLength: number;
  /** Comment of the packet in the file. */
  readonly comment: string | undefined;
  /** Position of a packet among those that segmentation offload merged in the capture. */
  readonly train?: {
    /** From 0. */
    readonly index: number;
    /** Number of merged packets. 0: the capture does not show it. */
    readonly count: number;
  };
}

export type TrainPlace = NonNullable<CapturedPacket['train']>;

/** Why and where reading ended before the end of the file. */
export interface CaptureDamage {
  /** Byte of the file at which reading ended. */
  readonly offset: number;
  /** For people. */
  readonly reason: string;
}

export interface CaptureParser {
  /** Bytes of the last piece that were read; the next piece begins after them. */
  readonly consumed: number;
  readonly damage: CaptureDamage | undefined;
  packets(bytes: Uint8Array, isLast: boolean): Iterable<CapturedPacket>;
}
