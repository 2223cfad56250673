/**
 * The messages of connection management and their datagram (IBTA vol. 1 §12.6 and §12.11 for SIDR; §13.4.3 for the MAD
 * header), as layouts. Offsets of message fields count from the end of the 24-byte header. Reserved fields are sent as
 * zero.
 */

import {
  bits,
  bytes,
  type Layout,
  type LayoutFields,
  readFields,
  u8,
  u16,
  u24,
  u32,
  u64,
  writeFields,
  zeroFields,
} from './field-layout.js';

export const MAD_BYTES = 256;
const HEADER_BYTES = 24;

const BASE_VERSION = 1;
const CLASS_CM = 0x07;
const CLASS_VERSION = 2;
const METHOD_SEND = 0x03;

const HEADER = {
  baseVersion: u8(0),
  managementClass: u8(1),
  classVersion: u8(2),
  method: u8(3),
  transactionId: u64(8),
  attributeId: u16(16),
  attributeModifier: u32(20),
} as const satisfies Layout;

/** REQ and SIDR_REQ give 36 of it to the IP addressing header. */
export const PRIVATE_DATA_BYTES = { REQ: 92, REP: 196, REJ: 148, SIDR_REQ: 216, SIDR_REP: 136 } as const;

/** One path of a REQ (§12.6.5): the primary, or the alternate 44 bytes further. */
function pathLayout<P extends string>(prefix: P, offset: number) {
  const fields = {
    LocalLid: u16(offset),
    RemoteLid: u16(offset + 2),
    LocalGid: bytes(offset + 4, 16),
    RemoteGid: bytes(offset + 20, 16),
    FlowLabel: bits(offset + 36, 0, 20),
    PacketRate: bits(offset + 36, 26, 6),
    TrafficClass: u8(offset + 40),
    HopLimit: u8(offset + 41),
    ServiceLevel: bits(offset + 42, 0, 4),
    SubnetLocal: bits(offset + 42, 4, 1),
    LocalAckTimeout: bits(offset + 43, 0, 5),
  } as const;
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [`${prefix}${name}`, field])) as {
    readonly [Name in keyof typeof fields as `${P}${Name}`]: (typeof fields)[Name];
  };
}

const REQ = {
  localCommId: u32(0),
  vendorId: u24(5),
  serviceId: u64(8),
  localCaGuid: u64(16),
  localQkey: u32(28),
  localQpn: u24(32),
  responderResources: u8(35),
  localEecn: u24(36),
  initiatorDepth: u8(39),
  remoteEecn: u24(40),
  remoteResponseTimeout: bits(43, 0, 5),
  transportType: bits(43, 5, 2),
  flowControl: bits(43, 7, 1),
  startingPsn: u24(44),
  localResponseTimeout: bits(47, 0, 5),
  retryCount: bits(47, 5, 3),
  pkey: u16(48),
  pathMtu: bits(50, 0, 4),
  rdcExists: bits(50, 4, 1),
  rnrRetryCount: bits(50, 5, 3),
  maxCmRetries: bits(51, 0, 4),
  srq: bits(51, 4, 1),
  extendedTransportType: bits(51, 5, 3),
  ...pathLayout('primary', 52),
  ...pathLayout('alternate', 96),
  privateData: bytes(140, PRIVATE_DATA_BYTES.REQ),
} as const satisfies Layout;

const MRA = {
  localCommId: u32(0),
  remoteCommId: u32(4),
  message: bits(8, 0, 2),
  serviceTimeout: bits(9, 0, 5),
  privateData: bytes(10, 222),
} as const satisfies Layout;

const REJ = {
  localCommId: u32(0),
  remoteCommId: u32(4),
  message: bits(8, 0, 2),
  infoLength: bits(9, 0, 7),
  reason: u16(10),
  info: bytes(12, 72),
  privateData: bytes(84, PRIVATE_DATA_BYTES.REJ),
} as const satisfies Layout;

const REP = {
  localCommId: u32(0),
  remoteCommId: u32(4),
  localQkey: u32(8),
  localQpn: u24(12),
  vendorIdHigh: u8(15),
  localEecn: u24(16),
  vendorIdMiddle: u8(19),
  startingPsn: u24(20),
  vendorIdLow: u8(23),
  responderResources: u8(24),
  initiatorDepth: u8(25),
  targetAckDelay: bits(26, 0, 5),
  failoverAccepted: bits(26, 5, 2),
  flowControl: bits(26, 7, 1),
  rnrRetryCount: bits(27, 0, 3),
  srq: bits(27, 3, 1),
  localCaGuid: u64(28),
  privateData: bytes(36, PRIVATE_DATA_BYTES.REP),
} as const satisfies Layout;

const RTU = { localCommId: u32(0), remoteCommId: u32(4), privateData: bytes(8, 224) } as const satisfies Layout;

const DREQ = {
  localCommId: u32(0),
  remoteCommId: u32(4),
  remoteQpn: u24(8),
  privateData: bytes(12, 220),
} as const satisfies Layout;

const DREP = { localCommId: u32(0), remoteCommId: u32(4), privateData: bytes(8, 224) } as const satisfies Layout;

const SIDR_REQ = {
  requestId: u32(0),
  pkey: u16(4),
  serviceId: u64(8),
  privateData: bytes(16, PRIVATE_DATA_BYTES.SIDR_REQ),
} as const satisfies Layout;

const SIDR_REP = {
  requestId: u32(0),
  status: u8(4),
  infoLength: u8(5),
  qpn: u24(8),
  serviceId: u64(12),
  qkey: u32(20),
  info: bytes(24, 72),
  privateData: bytes(96, PRIVATE_DATA_BYTES.SIDR_REP),
} as const satisfies Layout;

const MESSAGES = {
  REQ: { attributeId: 0x10, layout: REQ },
  MRA: { attributeId: 0x11, layout: MRA },
  REJ: { attributeId: 0x12, layout: REJ },
  REP: { attributeId: 0x13, layout: REP },
  RTU: { attributeId: 0x14, layout: RTU },
  DREQ: { attributeId: 0x15, layout: DREQ },
  DREP: { attributeId: 0x16, layout: DREP },
  SIDR_REQ: { attributeId: 0x17, layout: SIDR_REQ },
  SIDR_REP: { attributeId: 0x18, layout: SIDR_REP },
} as const;

export type MessageName = keyof typeof MESSAGES;
export type MessageFields<N extends MessageName> = LayoutFields<(typeof MESSAGES)[N]['layout']>;

interface MadOf<N extends MessageName> {
  readonly name: N;
  readonly transactionId: bigint;
  /** 0, or what the vendors' extended connection establishment puts into REQ and REP. */
  readonly attributeModifier: number;
  readonly fields: MessageFields<N>;
}

export type CmMad = { [N in MessageName]: MadOf<N> }[MessageName];

export type MadFault = 'length' | 'version' | 'class' | 'method' | 'attribute';

const NAME_BY_ATTRIBUTE: ReadonlyMap<number, MessageName> = new Map(
  Object.entries(MESSAGES).map(([name, { attributeId }]) => [attributeId, name as MessageName]),
);

export function parseMad(mad: Uint8Array): CmMad | MadFault {
  if (mad.length !== MAD_BYTES) return 'length';
  const header = readFields(HEADER, mad);
  if (header.managementClass !== CLASS_CM) return 'class';
  if (header.baseVersion !== BASE_VERSION || header.classVersion !== CLASS_VERSION) return 'version';
  if (header.method !== METHOD_SEND) return 'method';
  const name = NAME_BY_ATTRIBUTE.get(header.attributeId);
  if (name === undefined) return 'attribute';
  const { transactionId, attributeModifier } = header;
  const fields = readFields(MESSAGES[name].layout as Layout, mad.subarray(HEADER_BYTES));
  return { name, transactionId, attributeModifier, fields } as CmMad;
}

export function encodeMad(mad: CmMad): Uint8Array {
  const bytes = new Uint8Array(MAD_BYTES);
  writeFields(
    HEADER,
    {
      baseVersion: BASE_VERSION,
      managementClass: CLASS_CM,
      classVersion: CLASS_VERSION,
      method: METHOD_SEND,
      transactionId: mad.transactionId,
      attributeId: MESSAGES[mad.name].attributeId,
      attributeModifier: mad.attributeModifier,
    },
    bytes,
  );
  writeFields(MESSAGES[mad.name].layout as Layout, mad.fields, bytes.subarray(HEADER_BYTES));
  return bytes;
}

export function buildMad<N extends MessageName>(
  name: N,
  transactionId: bigint,
  fields: Partial<MessageFields<N>>,
): Uint8Array {
  const all = { ...zeroFields(MESSAGES[name].layout as Layout), ...fields };
  return encodeMad({ name, transactionId, attributeModifier: 0, fields: all } as unknown as CmMad);
}
