/**
 * The header of the PSP Security Protocol (PSP Architecture Specification, Google, 2022) around a RoCEv2 packet, in
 * transport mode:
 *
 *     IP | UDP | PSP 16 | UDP 8 (ports of the RoCEv2 packet) | BTH 12 | RETH .. payload .. ICRC | ICV 16
 *                        \------------ in the clear ---------/ \------- encrypted -------/
 *
 *     octet  0 next header: 17, UDP               4..7  SPI: bit 31 key phase, 31 bits: association of the receiver
 *            1 length: 1, in units of 8 behind the first 8     8..15 IV: a counter that never repeats under one key
 *            2 crypt offset: 5, in units of 4, from the end of the IV
 *            3 S, D, version (4 bits: 0 AES-128-GCM, 1 AES-256-GCM), V, 1
 *
 * AES-GCM encrypts from the crypt offset on. Its nonce is SPI and IV; its additional data is everything in the clear:
 * PSP header, inner UDP header, BTH. So opcode, PSN, destination QP and the bits FECN and BECN can be read on the path,
 * but not changed. Not protected is what precedes it: addresses, outer UDP ports, time to live, DSCP and ECN, which
 * routers have to change. A receiver compares addresses and ports with those of the association.
 *
 * A BTH whose second octet is that of a PSP header has TVer 1, which no receiver accepts (IBTA vol. 1 §9.2.5). One
 * socket can therefore distinguish both.
 */

import { readU32, writeU32 } from '../core/bytes.js';
import { BTH_BYTES, ICRC_BYTES } from './roce.js';
import { UDP_BYTES, writeUdp } from './udp.js';

/** The header without virtualization cookie. */
export const PSP_HEADER_BYTES = 16;
/** The integrity check value behind the ciphertext: the tag of AES-GCM. */
export const PSP_ICV_BYTES = 16;
export const PSP_PREFIX_BYTES = PSP_HEADER_BYTES + UDP_BYTES;
/** From the start of the PSP header to the first encrypted byte: the additional authenticated data. */
export const PSP_CLEAR_BYTES = PSP_PREFIX_BYTES + BTH_BYTES;
export const PSP_OVERHEAD_BYTES = PSP_PREFIX_BYTES + PSP_ICV_BYTES;
/** Bit of the SPI that changes with each key (the specification's choice of master key). */
export const PSP_PHASE_BIT = 0x8000_0000;
export const PSP_SPI_MASK = 0x7fff_ffff;

const NEXT_UDP = 17;
/** Next header: none follows (RFC 8200 §4.7). */
const NEXT_NONE = 59;
const HEADER_LENGTH = 1;
/** BTH and inner UDP header, in units of 4 bytes. */
const CRYPT_OFFSET = (UDP_BYTES + BTH_BYTES) / 4;
const ALWAYS_ONE = 1;
const VERSION_SHIFT = 2;
const SPI_OFFSET = 4;
const IV_OFFSET = 8;

/** An empty packet, which shows the peer that a key has arrived: header and ICV. */
export const PSP_EMPTY_BYTES = PSP_HEADER_BYTES + PSP_ICV_BYTES;
export const PSP_BYTES_MIN = PSP_CLEAR_BYTES + ICRC_BYTES + PSP_ICV_BYTES;

export const PSP_AES_128_GCM = 0;
export const PSP_AES_256_GCM = 1;

/** Whether a UDP payload begins as a PSP packet does; no valid RoCEv2 packet does. */
export function isPsp(bytes: Uint8Array, offset: number, length: number): boolean {
  return length >= PSP_EMPTY_BYTES && bytes[offset + 1] === HEADER_LENGTH && (bytes[offset + 3] & ALWAYS_ONE) !== 0;
}

/** Offset of the BTH in a UDP payload: 0 for a plain packet, {@link PSP_PREFIX_BYTES} for one in PSP. */
export function bthOffset(bytes: Uint8Array, offset: number, length: number): number {
  return length >= PSP_BYTES_MIN && bytes[offset] === NEXT_UDP && isPsp(bytes, offset, length) ? PSP_PREFIX_BYTES : 0;
}

/** Whether the header is one that this package writes: a RoCEv2 packet of version 0 or 1, or an empty packet. */
export function isPspOfRoce(bytes: Uint8Array, offset: number, length: number): boolean {
  const flags = bytes[offset + 3];
  if (flags !== ALWAYS_ONE && flags !== ((PSP_AES_256_GCM << VERSION_SHIFT) | ALWAYS_ONE)) return false;
  if (bytes[offset] === NEXT_NONE) return bytes[offset + 2] === 0 && length === PSP_EMPTY_BYTES;
  return bytes[offset] === NEXT_UDP && bytes[offset + 2] === CRYPT_OFFSET && length >= PSP_BYTES_MIN;
}

export function isEmptyPsp(bytes: Uint8Array, offset: number, length: number): boolean {
  return length === PSP_EMPTY_BYTES && bytes[offset] === NEXT_NONE && isPsp(bytes, offset, length);
}

/** {@link PSP_AES_128_GCM} or {@link PSP_AES_256_GCM}. The header is {@link isPspOfRoce}. */
export function pspVersion(bytes: Uint8Array, offset: number): number {
  return bytes[offset + 3] >> VERSION_SHIFT;
}

export function pspSpi(bytes: Uint8Array, offset: number): number {
  return readU32(bytes, offset + SPI_OFFSET) & PSP_SPI_MASK;
}

export function pspPhase(bytes: Uint8Array, offset: number): number {
  return bytes[offset + SPI_OFFSET] >> 7;
}

export function pspIvHigh(bytes: Uint8Array, offset: number): number {
  return readU32(bytes, offset + IV_OFFSET);
}

export function pspIvLow(bytes: Uint8Array, offset: number): number {
  return readU32(bytes, offset + IV_OFFSET + 4);
}

export function copyPspNonce(bytes: Uint8Array, offset: number, nonce: Uint8Array): void {
  for (let i = 0; i < 12; i++) nonce[i] = bytes[offset + SPI_OFFSET + i];
}

/** `spi` with its phase bit, 32 bits; the IV in two halves. */
export function writeEmptyPsp(b: Uint8Array, o: number, version: number, spi: number, ivHigh: number, ivLow: number) {
  b[o] = NEXT_NONE;
  b[o + 1] = HEADER_LENGTH;
  b[o + 2] = 0;
  b[o + 3] = (version << VERSION_SHIFT) | ALWAYS_ONE;
  writeU32(b, o + SPI_OFFSET, spi);
  writeU32(b, o + IV_OFFSET, ivHigh);
  writeU32(b, o + IV_OFFSET + 4, ivLow);
}

/** Writes the header in front of a RoCEv2 packet; {@link writeInnerUdp} follows. */
export function writePsp(b: Uint8Array, o: number, version: number, spi: number, ivHigh: number, ivLow: number): void {
  writeEmptyPsp(b, o, version, spi, ivHigh, ivLow);
  b[o] = NEXT_UDP;
  b[o + 2] = CRYPT_OFFSET;
}

/** Writes the UDP header of the RoCEv2 packet, of `roceBytes` from BTH to ICRC, behind the PSP header at `o`. */
export function writeInnerUdp(
  b: Uint8Array,
  o: number,
  sourcePort: number,
  destinationPort: number,
  roceBytes: number,
) {
  writeUdp(b, o + PSP_HEADER_BYTES, sourcePort, destinationPort, roceBytes);
}
