export interface LadderPacket {
  /** Of all packets of the file, from 1, as Wireshark counts; null for packets that are missing in it. */
  readonly number: number | null;
  readonly sentNs: number;
  readonly arrivedNs: number | null;
  readonly from: 'a' | 'b';
  readonly operation: string;
  /** As on the wire, 24 bits. */
  readonly psn: number;
  readonly relativePsn: number | null;
  readonly kind: 'data' | 'ack' | 'nak' | 'request' | 'cnp';
  readonly isLost: boolean;
  readonly isRepeated: boolean;
  readonly notes: readonly string[];
}

export interface LadderConnection {
  readonly name: string;
  readonly ends: { readonly a: string; readonly b: string };
  readonly packets: readonly LadderPacket[];
}
