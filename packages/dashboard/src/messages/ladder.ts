/** What the dashboard's server and its page tell each other about packets in the order of time: from a capture, a trace or the live lab. */

/** A packet between the two ends of a connection. */
export interface LadderPacket {
  /** Of all packets of the file, from 1, as Wireshark counts; null for packets that are missing in it. */
  readonly number: number | null;
  /** When it was sent, or seen; since the first packet. */
  readonly sentNs: number;
  /** When it arrived; null where that is not known, and for what was lost. */
  readonly arrivedNs: number | null;
  /** Which end sent it. */
  readonly from: 'a' | 'b';
  /** BTH opcode by name, or what an acknowledgement says. */
  readonly operation: string;
  /** As on the wire, 24 bits. */
  readonly psn: number;
  /** Counted from the first one of the connection that was seen, which is 0; null for what has no PSN of its own. */
  readonly relativePsn: number | null;
  /** For its colour. */
  readonly kind: 'data' | 'ack' | 'nak' | 'request' | 'cnp';
  /** It did not arrive, as far as the packets tell. */
  readonly isLost: boolean;
  /** The same PSN had been sent before. */
  readonly isRepeated: boolean;
  /** What there is to say about it, in sentences. */
  readonly notes: readonly string[];
}

/** Two queue pairs that talk to each other; the far one may be unknown where nothing came back. */
export interface LadderConnection {
  /** For people. */
  readonly name: string;
  /** Address or role of each end, and its queue pair where it is known. */
  readonly ends: { readonly a: string; readonly b: string };
  /** In order of time. */
  readonly packets: readonly LadderPacket[];
}

/** `GET state`. */
export interface CaptureState {
  /** Tells what the page is over. */
  readonly kind: 'capture';
  /** Name of the file. */
  readonly file: string;
  /** A capture has what passed a link, a trace what one endpoint did. */
  readonly format: 'capture' | 'trace';
  /** In order of appearance. */
  readonly connections: readonly LadderConnection[];
  /** What is not shown, and why: a sentence each. */
  readonly remarks: readonly string[];
}
