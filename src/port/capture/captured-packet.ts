/** What the readers of captures deliver. */

export interface CapturedPacket {
  readonly timestampNs: bigint;
  readonly interfaceId: number;
  readonly linkType: number;
  readonly bytes: Uint8Array;
  /** Larger than `bytes.length` when the capture cut the packet off. */
  readonly originalLength: number;
  readonly comment: string | undefined;
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
