/**
 * Internals of packet that the packages of this repository use. No part of the public API: it changes without notice.
 */

export { IpAddress } from '../packet/address.js';
export {
  CREDIT_COUNT,
  NAK_INVALID_REQUEST,
  NAK_PSN_SEQUENCE,
  NAK_REMOTE_ACCESS,
  NAK_REMOTE_OPERATION,
  RNR_TIMER_NS,
  SYNDROME_ACK,
  SYNDROME_KIND_ACK,
  SYNDROME_KIND_NAK,
  SYNDROME_KIND_RESERVED,
  SYNDROME_KIND_RNR,
  SYNDROME_RNR,
  syndromeKind,
} from '../packet/aeth.js';
export { addWords, finishChecksum } from '../packet/checksum.js';
export { prioritiesOfDscps } from '../packet/dscp-priority.js';
export { ECN_CE, ECN_NOT_ECT, readEcn, writeCe, writeTrafficClass } from '../packet/ecn.js';
export {
  ETHERNET_BYTES,
  ETHERNET_WIRE_BYTES,
  ETHERTYPE_IPV4,
  ETHERTYPE_IPV6,
  ETHERTYPE_VLAN,
  MAC_BYTES,
  parseMac,
  VLAN_TAG_BYTES,
  writeEthernet,
} from '../packet/ethernet.js';
export { ETHERNET_LINK_BYTES, FRAME_OK, FrameInfo, linkOverheadBytes, parseFrame } from '../packet/frame.js';
export { senderInGrh } from '../packet/grh.js';
export {
  checkIcrc,
  ICRC_BAD,
  ICRC_OK_ID_SOLVED,
  IcrcFlow,
  icrcOfIpPacket,
  renumberIcrc,
  sealIcrc,
} from '../packet/icrc.js';
export { IcrcFlows } from '../packet/icrc-flows.js';
export {
  appendHop,
  BTH_MULTIPATH,
  BTH_TRAILER,
  ENTROPIES_MAX,
  encodeDigest,
  INT_DATA_DIGEST,
  INT_DATA_HOPS,
  nanoseconds,
  newHopRecord,
  raiseDigest,
  readIntKind,
  trailerBytesOf,
} from '../packet/int-trailer.js';
export { IP_PROTOCOL_UDP, IPV4_BYTES, refreshIpv4Checksum, writeIpv4 } from '../packet/ipv4.js';
export { IPV6_BYTES, IPV6_DESTINATION_OFFSET, IPV6_SOURCE_OFFSET, writeIpv6 } from '../packet/ipv6.js';
export {
  CNP,
  HDR_AETH,
  HDR_RETH,
  OP_ACK,
  OP_ATOMIC,
  OP_ATOMIC_ACK,
  OP_CNP,
  OP_READ_REQUEST,
  OP_READ_RESPONSE,
  OP_SEND,
  OP_TRIMMED,
  OP_WRITE,
  OPCODES,
  opcodeName,
  PLACE_FIRST,
  PLACE_LAST,
  PLACE_MIDDLE,
  PLACE_NONE,
  PLACE_ONLY,
  RC_ACK,
  RC_COMPARE_SWAP,
  RC_FETCH_ADD,
  RC_READ_REQUEST,
  RC_READ_RESPONSE_FIRST,
  RC_READ_RESPONSE_LAST,
  RC_READ_RESPONSE_MIDDLE,
  RC_READ_RESPONSE_ONLY,
  RC_SEND_FIRST,
  RC_SEND_LAST,
  RC_SEND_MIDDLE,
  RC_SEND_ONLY,
  RC_SEND_ONLY_INV,
  RC_WRITE_FIRST,
  RC_WRITE_LAST,
  RC_WRITE_MIDDLE,
  RC_WRITE_ONLY,
  RC_WRITE_ONLY_IMM,
  UC_BASE,
  UD_SEND_ONLY,
  VENDOR_TRIM_NAK,
  VENDOR_TRIMMED,
} from '../packet/opcode.js';
export { PATH_MTUS, type PathMtu } from '../packet/path-mtu.js';
export { PFC_FRAME_BYTES, PFC_QUANTA_MAX, PfcFrame, PRIORITIES, parsePfc, pauseNs, writePfc } from '../packet/pfc.js';
export { PSN_COUNT, PSN_HALF, PSN_MASK, psnAdd, psnDiff } from '../packet/psn.js';
export {
  isEmptyPsp,
  isPsp,
  isPspOfRoce,
  PSP_CLEAR_BYTES,
  PSP_HEADER_BYTES,
  PSP_ICV_BYTES,
  PSP_OVERHEAD_BYTES,
  PSP_PREFIX_BYTES,
} from '../packet/psp.js';
export {
  ATOMIC_BYTES,
  BTH_BYTES,
  BTH_MIGREQ,
  BTH_PAD_SHIFT,
  DETH_BYTES,
  emitRoce,
  GRH_BYTES,
  ICRC_BYTES,
  PARSE_OK,
  PARSE_REASONS,
  parseRoce,
  RETH_BYTES,
  type RoceFields,
  RocePacket,
  SACK_BITMAP_BYTES_MAX,
} from '../packet/roce.js';
export { refreshUdpChecksum, UDP_BYTES, writeUdp, writeUdpLength } from '../packet/udp.js';
export { syndromeName } from '../packet/view.js';
