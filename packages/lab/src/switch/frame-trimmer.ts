/**
 * Packet trimming: a data packet that would be dropped is sent as its header in a control queue (Cut Payload, Cheng et
 * al., NSDI 2014; NDP, Handley et al., SIGCOMM 2017; Ultra Ethernet). The form is ours: opcode, DSCP and ICRC are
 * rewritten. A trimmed READ response becomes the requester's retransmission request. Only packets of connections with
 * BTH_WAYS are trimmed.
 */

import { RoceError, readU16, writeU16 } from 'rocev2/internal/core';
import {
  BTH_BYTES,
  BTH_MIGREQ,
  BTH_MULTIPATH,
  BTH_TRAILER,
  ICRC_BYTES,
  IP_PROTOCOL_UDP,
  IPV4_BYTES,
  IPV6_BYTES,
  icrcOfIpPacket,
  isPsp,
  OP_READ_RESPONSE,
  OP_SEND,
  OP_WRITE,
  OPCODES,
  PRIORITIES,
  refreshUdpChecksum,
  UDP_BYTES,
  VENDOR_TRIM_NAK,
  VENDOR_TRIMMED,
  writeUdpLength,
} from 'rocev2/internal/packet';
import { ROCE_UDP_PORT } from 'rocev2/internal/port';
import type { TrimConfig } from './switch-config.js';

/** DSCP of the control priority: its class selector. */
const DSCP_OF_PRIORITY = 8;
const DEFAULT_PRIORITY = 6;
const CUT_BYTES = BTH_BYTES + ICRC_BYTES;
const NOT_CUT = -1;

export class FrameTrimmer {
  readonly priority: number;
  readonly #isOn: boolean;

  constructor(config: TrimConfig | undefined) {
    this.#isOn = config !== undefined;
    this.priority = config?.priority ?? DEFAULT_PRIORITY;
    if (!Number.isInteger(this.priority) || this.priority < 0 || this.priority >= PRIORITIES) {
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `trim priority ${this.priority}`, 'priorities are 0 to 7');
    }
  }

  /**
   * Returns the new length, or 0 if the frame is not trimmed and unchanged. The ICRC of a trimmed packet is computed in
   * separate buffers.
   */
  cut(bytes: Uint8Array, length: number, ip: number): number {
    if (!this.#isOn || ip === 0) return 0;
    const isV4 = bytes[ip] >> 4 === 4;
    const udp = ip + (isV4 ? IPV4_BYTES : IPV6_BYTES);
    const bth = udp + UDP_BYTES;
    if (length <= bth + CUT_BYTES || !isSpread(bytes, ip, udp)) return 0;
    const opcode = opcodeOfCut(bytes[bth]);
    if (opcode === NOT_CUT) return 0;
    bytes[bth] = opcode;
    bytes[bth + 1] = BTH_MIGREQ;
    bytes[bth + 4] &= ~BTH_TRAILER;
    this.#writeDscp(bytes, ip, isV4);
    const end = bth + CUT_BYTES;
    writeUdpLength(bytes, ip, udp, CUT_BYTES);
    const { computed } = icrcOfIpPacket(bytes.subarray(ip, end));
    for (let i = 0; i < ICRC_BYTES; i++) bytes[end - ICRC_BYTES + i] = computed >>> (8 * i);
    refreshUdpChecksum(bytes, ip, udp);
    return end;
  }

  #writeDscp(bytes: Uint8Array, ip: number, isV4: boolean): void {
    const dscp = this.priority * DSCP_OF_PRIORITY;
    // The checksum of IPv4 is made again with the length.
    if (isV4) bytes[ip + 1] = (dscp << 2) | (bytes[ip + 1] & 3);
    else writeU16(bytes, ip, (readU16(bytes, ip) & 0xf03f) | (dscp << 6));
  }
}

function isSpread(bytes: Uint8Array, ip: number, udp: number): boolean {
  const isV4 = bytes[ip] >> 4 === 4;
  if (isV4 && bytes[ip] !== 0x45) return false;
  if (bytes[ip + (isV4 ? 9 : 6)] !== IP_PROTOCOL_UDP || readU16(bytes, udp + 2) !== ROCE_UDP_PORT) return false;
  const bth = udp + UDP_BYTES;
  return (bytes[bth + 4] & BTH_MULTIPATH) !== 0 && !isPsp(bytes, bth, readU16(bytes, udp + 4) - UDP_BYTES);
}

/** The opcode of a packet after trimming; NOT_CUT for packets without data. */
function opcodeOfCut(opcode: number): number {
  const info = OPCODES[opcode];
  if (info?.transport !== 'RC') return NOT_CUT;
  if (info.kind === OP_READ_RESPONSE) return VENDOR_TRIM_NAK;
  return info.kind === OP_SEND || info.kind === OP_WRITE ? VENDOR_TRIMMED : NOT_CUT;
}
