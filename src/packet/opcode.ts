/**
 * The BTH opcode table (IBTA vol. 1 §9.2, table 38; RoCEv2 annex A17 for CNP): which extension headers follow, what the
 * packet is part of, and how long its payload may be. Everything that reads or writes packets derives from this one
 * table.
 */

/** Extension headers, as bits; they are in the packet in this order. FLUSH extended header. */
export const HDR_FETH = 1;
/** RDMA extended header: address, key, length. */
export const HDR_RETH = 2;
/** ACK extended header: syndrome and MSN. */
export const HDR_AETH = 4;
/** Atomic extended header: address, key, two operands. */
export const HDR_ATOMIC_ETH = 8;
/** Atomic ACK extended header: the value before the operation. */
export const HDR_ATOMIC_ACK_ETH = 16;
/** Datagram extended header: Q_Key and source QPN. */
export const HDR_DETH = 32;
/** Immediate data, 4 bytes. */
export const HDR_IMM = 64;
/** Invalidate extended header: an R_Key. */
export const HDR_IETH = 128;
/** The 16 reserved bytes of a congestion notification packet. */
export const HDR_CNP_RESERVED = 256;
/** Our own extension (see {@link VENDOR_SACK}): a bitmap of received PSNs fills the rest of the packet. */
export const HDR_SACK = 512;

/** What the message is. */
export const OP_SEND = 1;
/** RDMA WRITE. */
export const OP_WRITE = 2;
/** RDMA READ request. */
export const OP_READ_REQUEST = 3;
/** RDMA READ response, with the data. */
export const OP_READ_RESPONSE = 4;
/** Acknowledgement, positive or negative. */
export const OP_ACK = 5;
/** Acknowledgement of an atomic operation, with its result. */
export const OP_ATOMIC_ACK = 6;
/** COMPARE_SWAP or FETCH_ADD. */
export const OP_ATOMIC = 7;
/** Congestion notification packet. */
export const OP_CNP = 8;
/** Report of a trimmed packet. */
export const OP_TRIMMED = 9;
/** FLUSH: earlier WRITEs take effect, to the extent that its FETH says, before it is answered. */
export const OP_FLUSH = 10;
/** ATOMIC WRITE: 8 bytes, of which no reader sees a part. */
export const OP_ATOMIC_WRITE = 11;

/** Where in its message the packet stands: the length rule of IBTA §9.7.4.1.6. */
export const PLACE_FIRST = 1; // payload exactly the path MTU
/** Neither the first nor the last packet: the payload is exactly the path MTU. */
export const PLACE_MIDDLE = 2;
/** The last of several packets: the payload is 1 byte to the path MTU. */
export const PLACE_LAST = 3;
/** The whole message in one packet: the payload is 0 bytes to the path MTU. */
export const PLACE_ONLY = 4;
/** Not part of a message: there is no payload. */
export const PLACE_NONE = 5;

/** Transport service of an opcode; RoCEv2 adds CNP, and the codes from 0xC0 on belong to manufacturers. */
export type Transport = 'RC' | 'UC' | 'UD' | 'CNP' | 'VENDOR';

/** One row of the opcode table. */
export interface OpcodeInfo {
  /** BTH byte 0: the transport in the upper three bits, the operation in the lower five. */
  readonly opcode: number;
  /** The spec's name, e.g. `RDMA_WRITE_FIRST`. */
  readonly name: string;
  /** The transport of the queue pairs that accept it. */
  readonly transport: Transport;
  /** One of the OP_ constants. */
  readonly kind: number;
  /** One of the PLACE_ constants. */
  readonly place: number;
  /** HDR_ bits of the extension headers it has. */
  readonly headers: number;
  /** Bytes of all extension headers (BTH not included; a SACK bitmap not included). */
  readonly extBytes: number;
}

/**
 * Upper three bits of the opcodes of reliable connections. Opcodes of SEND and WRITE are `base | operation`, in RC and
 * UC alike.
 */
export const RC_BASE = 0x00;
/** The same for unreliable connections. */
export const UC_BASE = 0x20;
/** First of several packets of a SEND. */
export const RC_SEND_FIRST = 0x00;
/** Inner packet of a SEND. */
export const RC_SEND_MIDDLE = 0x01;
/** Last of several packets of a SEND. */
export const RC_SEND_LAST = 0x02;
/** Last of several packets of a SEND with immediate data. */
export const RC_SEND_LAST_IMM = 0x03;
/** SEND in one packet. */
export const RC_SEND_ONLY = 0x04;
/** SEND with immediate data in one packet. */
export const RC_SEND_ONLY_IMM = 0x05;
/** First of several packets of an RDMA WRITE; it alone has the RETH. */
export const RC_WRITE_FIRST = 0x06;
/** Inner packet of an RDMA WRITE. */
export const RC_WRITE_MIDDLE = 0x07;
/** Last of several packets of an RDMA WRITE. */
export const RC_WRITE_LAST = 0x08;
/** Last of several packets of an RDMA WRITE with immediate data. */
export const RC_WRITE_LAST_IMM = 0x09;
/** RDMA WRITE in one packet. */
export const RC_WRITE_ONLY = 0x0a;
/** RDMA WRITE with immediate data in one packet. */
export const RC_WRITE_ONLY_IMM = 0x0b;
/** Asks for data; takes as many PSNs as the response has packets. */
export const RC_READ_REQUEST = 0x0c;
/** First of several packets of a READ response; acknowledges everything before the READ. */
export const RC_READ_RESPONSE_FIRST = 0x0d;
/** Inner packet of a READ response, without AETH. */
export const RC_READ_RESPONSE_MIDDLE = 0x0e;
/** Last of several packets of a READ response. */
export const RC_READ_RESPONSE_LAST = 0x0f;
/** READ response in one packet. */
export const RC_READ_RESPONSE_ONLY = 0x10;
/** ACK, RNR NAK or NAK, by the syndrome. */
export const RC_ACK = 0x11;
/** Result of an atomic operation. */
export const RC_ATOMIC_ACK = 0x12;
/** Swaps 64 bits if they equal the compare operand. */
export const RC_COMPARE_SWAP = 0x13;
/** Adds to 64 bits and returns what was there. */
export const RC_FETCH_ADD = 0x14;
/** Last of several packets of a SEND that invalidates an R_Key. */
export const RC_SEND_LAST_INV = 0x16;
/** SEND in one packet that invalidates an R_Key. */
export const RC_SEND_ONLY_INV = 0x17;
/** FLUSH (IBTA vol. 1 release 1.5, annex A19); a READ response without data answers it. */
export const RC_FLUSH = 0x1c;
/** ATOMIC WRITE (annex A19); a READ response without data answers it. */
export const RC_ATOMIC_WRITE = 0x1d;
/** Datagram: a UD SEND is always one packet. */
export const UD_SEND_ONLY = 0x64;
/** Datagram with immediate data. */
export const UD_SEND_ONLY_IMM = 0x65;
/** Congestion notification packet: the receiver of a marked packet notifies its sender (annex A17.9.3). */
export const CNP = 0x81;
/**
 * Selective acknowledgement, an extension between our own endpoints: BTH, AETH, bitmap. In the opcode range that IBTA
 * leaves to manufacturers (top bits 11), so that no standard peer can mistake it.
 */
export const VENDOR_SACK = 0xd1;
/** A SEND or WRITE trimmed to its BTH by a switch, whose opcode this replaces: an extension, as the previous one. */
export const VENDOR_TRIMMED = 0xd2;
/**
 * Its receiver requests retransmission of the packet with this PSN: BTH alone. A trimmed READ response also becomes
 * one.
 */
export const VENDOR_TRIM_NAK = 0xd3;

const HEADER_BYTES: ReadonlyArray<readonly [number, number]> = [
  [HDR_FETH, 4],
  [HDR_RETH, 16],
  [HDR_AETH, 4],
  [HDR_ATOMIC_ETH, 28],
  [HDR_ATOMIC_ACK_ETH, 8],
  [HDR_DETH, 8],
  [HDR_IMM, 4],
  [HDR_IETH, 4],
  [HDR_CNP_RESERVED, 16],
];

function extBytesOf(headers: number): number {
  let bytes = 0;
  for (const [bit, size] of HEADER_BYTES) if (headers & bit) bytes += size;
  return bytes;
}

function info(
  opcode: number,
  name: string,
  transport: Transport,
  kind: number,
  place: number,
  headers: number,
): OpcodeInfo {
  return { opcode, name, transport, kind, place, headers, extBytes: extBytesOf(headers) };
}

function sendAndWrite(transport: 'RC' | 'UC', base: number): OpcodeInfo[] {
  return [
    info(base | 0x00, 'SEND_FIRST', transport, OP_SEND, PLACE_FIRST, 0),
    info(base | 0x01, 'SEND_MIDDLE', transport, OP_SEND, PLACE_MIDDLE, 0),
    info(base | 0x02, 'SEND_LAST', transport, OP_SEND, PLACE_LAST, 0),
    info(base | 0x03, 'SEND_LAST_WITH_IMMEDIATE', transport, OP_SEND, PLACE_LAST, HDR_IMM),
    info(base | 0x04, 'SEND_ONLY', transport, OP_SEND, PLACE_ONLY, 0),
    info(base | 0x05, 'SEND_ONLY_WITH_IMMEDIATE', transport, OP_SEND, PLACE_ONLY, HDR_IMM),
    info(base | 0x06, 'RDMA_WRITE_FIRST', transport, OP_WRITE, PLACE_FIRST, HDR_RETH),
    info(base | 0x07, 'RDMA_WRITE_MIDDLE', transport, OP_WRITE, PLACE_MIDDLE, 0),
    info(base | 0x08, 'RDMA_WRITE_LAST', transport, OP_WRITE, PLACE_LAST, 0),
    info(base | 0x09, 'RDMA_WRITE_LAST_WITH_IMMEDIATE', transport, OP_WRITE, PLACE_LAST, HDR_IMM),
    info(base | 0x0a, 'RDMA_WRITE_ONLY', transport, OP_WRITE, PLACE_ONLY, HDR_RETH),
    info(base | 0x0b, 'RDMA_WRITE_ONLY_WITH_IMMEDIATE', transport, OP_WRITE, PLACE_ONLY, HDR_RETH | HDR_IMM),
  ];
}

const TABLE: readonly OpcodeInfo[] = [
  ...sendAndWrite('RC', RC_BASE),
  info(RC_READ_REQUEST, 'RDMA_READ_REQUEST', 'RC', OP_READ_REQUEST, PLACE_NONE, HDR_RETH),
  info(RC_READ_RESPONSE_FIRST, 'RDMA_READ_RESPONSE_FIRST', 'RC', OP_READ_RESPONSE, PLACE_FIRST, HDR_AETH),
  info(RC_READ_RESPONSE_MIDDLE, 'RDMA_READ_RESPONSE_MIDDLE', 'RC', OP_READ_RESPONSE, PLACE_MIDDLE, 0),
  info(RC_READ_RESPONSE_LAST, 'RDMA_READ_RESPONSE_LAST', 'RC', OP_READ_RESPONSE, PLACE_LAST, HDR_AETH),
  info(RC_READ_RESPONSE_ONLY, 'RDMA_READ_RESPONSE_ONLY', 'RC', OP_READ_RESPONSE, PLACE_ONLY, HDR_AETH),
  info(RC_ACK, 'ACKNOWLEDGE', 'RC', OP_ACK, PLACE_NONE, HDR_AETH),
  info(RC_ATOMIC_ACK, 'ATOMIC_ACKNOWLEDGE', 'RC', OP_ATOMIC_ACK, PLACE_NONE, HDR_AETH | HDR_ATOMIC_ACK_ETH),
  info(RC_COMPARE_SWAP, 'COMPARE_SWAP', 'RC', OP_ATOMIC, PLACE_NONE, HDR_ATOMIC_ETH),
  info(RC_FETCH_ADD, 'FETCH_ADD', 'RC', OP_ATOMIC, PLACE_NONE, HDR_ATOMIC_ETH),
  info(RC_SEND_LAST_INV, 'SEND_LAST_WITH_INVALIDATE', 'RC', OP_SEND, PLACE_LAST, HDR_IETH),
  info(RC_SEND_ONLY_INV, 'SEND_ONLY_WITH_INVALIDATE', 'RC', OP_SEND, PLACE_ONLY, HDR_IETH),
  info(RC_FLUSH, 'FLUSH', 'RC', OP_FLUSH, PLACE_NONE, HDR_FETH | HDR_RETH),
  info(RC_ATOMIC_WRITE, 'ATOMIC_WRITE', 'RC', OP_ATOMIC_WRITE, PLACE_ONLY, HDR_RETH),
  ...sendAndWrite('UC', UC_BASE),
  info(UD_SEND_ONLY, 'SEND_ONLY', 'UD', OP_SEND, PLACE_ONLY, HDR_DETH),
  info(UD_SEND_ONLY_IMM, 'SEND_ONLY_WITH_IMMEDIATE', 'UD', OP_SEND, PLACE_ONLY, HDR_DETH | HDR_IMM),
  info(CNP, 'CNP', 'CNP', OP_CNP, PLACE_NONE, HDR_CNP_RESERVED),
  info(VENDOR_SACK, 'SACK', 'VENDOR', OP_ACK, PLACE_NONE, HDR_AETH | HDR_SACK),
  info(VENDOR_TRIMMED, 'TRIMMED', 'VENDOR', OP_TRIMMED, PLACE_NONE, 0),
  info(VENDOR_TRIM_NAK, 'TRIM_NAK', 'VENDOR', OP_TRIMMED, PLACE_NONE, 0),
];

/** The table, indexed by opcode; `undefined` for opcodes that are reserved or not supported. */
export const OPCODES: ReadonlyArray<OpcodeInfo | undefined> = Array.from({ length: 256 }, (_, opcode) =>
  TABLE.find((entry) => entry.opcode === opcode),
);

/** `RC RDMA_WRITE_FIRST`, or `opcode 0x15` where the table has no entry. */
export function opcodeName(opcode: number): string {
  const entry = OPCODES[opcode];
  return entry === undefined ? `opcode 0x${opcode.toString(16).padStart(2, '0')}` : `${entry.transport} ${entry.name}`;
}
